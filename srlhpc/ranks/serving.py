"""Makes policy servers and evaluators from the plan: those who act with parameters that others train.

Ranks that only act load nothing of learning: no rule, optimiser, process group or trainer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from srlhpc.comm.channel import Stream
from srlhpc.comm.node.parameters import SharedSubscription, Succession
from srlhpc.comm.node.window import share_on_node
from srlhpc.comm.parameters import (
    PULL_LAYOUT,
    SUBSCRIPTION_SLOTS,
    LinkSubscription,
    LocalSubscription,
    ParameterSubscription,
    parameter_layout,
)
from srlhpc.import_path import load_module
from srlhpc.plan.exploration import acting_exploration, group_columns
from srlhpc.plan.layouts import policy_shapes
from srlhpc.plan.plan import RolePlan
from srlhpc.plan.seeds import seed_of
from srlhpc.policies.policy import Policy, vector_size
from srlhpc.ranks.actors import episode_summary
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.devices import autocast_dtype, device_of
from srlhpc.ranks.global_generators import OwnGenerators
from srlhpc.ranks.matchups import build_matchups, evaluating_player, load_version, version_parameters
from srlhpc.ranks.policies import build_expert, build_policy
from srlhpc.roles.acting.evaluator import Evaluator
from srlhpc.roles.acting.player import Player
from srlhpc.roles.serving.policy_server import PolicyServer
from srlhpc.roles.serving.served_policy import ServedPolicy
from srlhpc.roles.serving.version_shelf import VersionShelf

LEADER_PATIENCE_SECONDS = 30.0


def build_policy_server(context: RankContext, role: RolePlan) -> PolicyServer:
    return Serving(context).policy_server(role)


def build_evaluator(context: RankContext, role: RolePlan) -> Evaluator:
    return Serving(context).evaluator(role)


class Serving:
    """The policy servers and evaluators of one rank."""

    def __init__(self, context: RankContext) -> None:
        self._context = context
        self._plan, self._wiring, self._transport = context.plan, context.wiring, context.transport
        self._world, self._sources, self._restart = context.world, context.sources, context.restart

    def policy_server(self, role: RolePlan) -> PolicyServer:
        plan = self._plan
        # Beside a trainer its own number of threads stands.
        if not any(r.name == "trainer" for r in plan.ranks[role.rank].roles):
            torch.set_num_threads(plan.spec.policy_servers.threads)
        device = device_of(plan, plan.spec.policy_servers.device)
        served = {
            name: made
            for name in dict.fromkeys(seat.policy for seat in plan.seats)
            if role.policy in (None, name) and (made := self._served(role, name, device)) is not None
        }
        return PolicyServer(role.label, served)

    def _served(self, role: RolePlan, name: str, device: torch.device) -> ServedPolicy | None:
        plan = self._plan
        policy = build_policy(plan, name, self._context.paths).to(device)
        # Also where there is nothing to serve: ranks of the node that subscribe share memory, which all must open.
        subscription = self._subscription(name, role, vector_size(policy))
        ends = self._wiring.serving_ends(role, name)
        if ends is None:
            if subscription is not None:
                subscription.close()
            return None
        expert = build_expert(plan, name, self._context.paths)
        seats = [plan.seat_number(served.group, served.seat) for served in plan.served(role, name)]
        numbers = (role.index, list(plan.spec.policies).index(name), self._restart)
        generator = torch.Generator(device).manual_seed(seed_of(plan.spec.seed, "acting", *numbers))
        return ServedPolicy(
            policy,
            subscription,
            *ends,
            rows=group_columns(plan, name),
            outputs=tuple(policy_shapes(plan, name).outputs),
            device=device,
            autocast=autocast_dtype(self._context, device),
            generator=generator,
            explore=acting_exploration(plan, name, seats),
            expert=None if expert is None else expert.to(device),
            shelf=self._shelf(role, name, policy, device),
            frozen_exploration=plan.spec.policies[name].algorithm.explore_in_evaluation(),
        )

    def _shelf(self, role: RolePlan, name: str, policy: Policy, device: torch.device) -> VersionShelf | None:
        """Where the policy's versions are, that play in matches."""
        plan, paths = self._plan, self._context.paths
        if plan.spec.matches is None or not plan.trainers(name):
            return None

        def read(updates: int) -> Mapping[str, Any]:
            return version_parameters(paths, name, updates)

        def load(network: Policy, arrays: Mapping[str, Any], updates: int) -> None:
            load_version(network, arrays, name, updates)

        return VersionShelf(
            policy,
            read,
            load,
            resident=self._met_at_once(role, name),
            in_thread=not plan.serial,
            # Weights that are held in another precision are no parameters of the network.
            stacks=autocast_dtype(self._context, device) is None,
        )

    def _met_at_once(self, role: RolePlan, name: str) -> int:
        """Versions of the policy that the groups of a server meet at a time.

        Each pair of a side that learns and one that versions play has its `resident` ones, and the next lot may bring
        one more before the last is played to its end; lots of versions alone have as many.
        """
        plan = self._plan
        assert plan.spec.matches is not None
        groups = {served.group for served in plan.served(role, name)}
        pairs = {
            (seat.name, other.name)
            for group in groups
            if (seat := plan.learning_seat(group)) is not None
            for other in plan.seats_of(name)
            if other is not seat
        }
        measuring = any(plan.measures(group) for group in groups)
        return max(1, len(pairs) + measuring) * (plan.spec.matches.resident + 2)

    def evaluator(self, role: RolePlan) -> Evaluator:
        plan, spec = self._plan, self._plan.spec
        torch.set_num_threads(1)
        environment = load_module(spec.environment.factory, "envs").build(
            spec.environment,
            num_environments=spec.evaluators.environments,
            seed=seed_of(spec.seed, "evaluation", role.index),
        )
        players: dict[str, Player] = {}
        autocast = autocast_dtype(self._context, torch.device("cpu"))
        subscriptions: dict[str, ParameterSubscription] = {}
        for seat in plan.whole_seats:
            policy = build_policy(plan, seat.policy, self._context.paths)
            players[seat.policy] = evaluating_player(spec, policy, seat.policy, seat, autocast)
            subscription = self._subscription(seat.policy, role, vector_size(policy))
            if subscription is not None:
                subscriptions[seat.policy] = subscription
        return Evaluator(
            role.label,
            environment,
            players,
            subscriptions,
            episodes=spec.evaluators.episodes,
            every_updates=spec.evaluators.every_updates,
            seed=lambda *number: seed_of(spec.seed, "evaluation", role.index, *number),
            episode_summary=episode_summary(plan),
            # What the evaluator's environments draw must not depend on the actors', nor theirs on it.
            around=OwnGenerators if plan.serial else None,
            matchups=build_matchups(self._context, autocast),
            most_steps=spec.evaluators.max_episode_steps,
        )

    def _subscription(self, name: str, role: RolePlan, size: int) -> ParameterSubscription | None:
        """How a role gets a policy's parameters; None: nobody trains it."""
        plan = self._plan
        if not plan.trainers(name):
            return None
        first = plan.trainers(name)[0]
        if first.rank == role.rank:
            return LocalSubscription(self._sources[name])
        pulls = self._transport.outbox(plan.link(Stream.PULLS, role, first, 0, name), PULL_LAYOUT, slots=1)
        parameters = self._transport.inbox(
            [plan.link(Stream.PARAMETERS, first, role, 0, name)], parameter_layout(size), pool=SUBSCRIPTION_SLOTS
        )
        upstream = LinkSubscription(size, pulls, parameters)
        assert self._world is not None
        ranks = [subscriber.rank for subscriber in plan.subscribers(name) if subscriber.rank != first.rank]
        share = share_on_node(self._world, ranks, size, tag=list(plan.spec.policies).index(name))
        if share is None:
            return upstream
        succession = Succession(share.place, len(share.members), LEADER_PATIENCE_SECONDS, time.monotonic)
        return SharedSubscription(share.memory, share.place, upstream, size, succession)
