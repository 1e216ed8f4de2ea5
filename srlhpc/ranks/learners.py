"""Makes trainers, policy servers and evaluators from the plan: everything that needs torch."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import torch

from srlhpc.algorithms.algorithm import Algorithm, Context
from srlhpc.comm.channel import Stream, Transport
from srlhpc.comm.mpi.world import MpiWorld
from srlhpc.comm.node.parameters import SharedSubscription, Succession
from srlhpc.comm.node.window import share_on_node
from srlhpc.comm.parameters import (
    PULL_LAYOUT,
    SUBSCRIPTION_SLOTS,
    LinkSubscription,
    LocalSubscription,
    ParameterSource,
    ParameterSubscription,
    parameter_layout,
)
from srlhpc.comm.process_group import join_trainers
from srlhpc.errors import UserError
from srlhpc.import_path import load_module
from srlhpc.plan.lag_limits import max_policy_lag, needs_grants, oldest_trained
from srlhpc.plan.layouts import block_layout, policy_shapes
from srlhpc.plan.plan import SERIAL_CHECKPOINT_UPDATES, Plan, RolePlan
from srlhpc.plan.seeds import seed_of
from srlhpc.plan.sizes import batch_blocks, block_fragments
from srlhpc.policies.policy import Policy, vector_size
from srlhpc.ranks.actors import episode_summary
from srlhpc.ranks.global_generators import OwnGenerators
from srlhpc.ranks.torch_precision import enable_cudnn_benchmark, set_matmul_precision
from srlhpc.ranks.wiring import Wiring
from srlhpc.roles.acting.evaluator import Evaluator, Player
from srlhpc.roles.checkpoint_parts import PartSender, slots_of
from srlhpc.roles.serving.policy_server import PolicyServer, ServedPolicy
from srlhpc.roles.training.batches import Batches
from srlhpc.roles.training.checkpoint_part import Counters, checkpoint_part, load_part, part_tensors
from srlhpc.roles.training.copy_stream import PartCopy, copy_stream_to
from srlhpc.roles.training.grants import LagLimiter
from srlhpc.roles.training.staging import Staging
from srlhpc.roles.training.trainer import Trainer, TrainerSettings

LEADER_PATIENCE_SECONDS = 30.0


class LearningRoles:
    """The torch roles of one rank. Make trainers first: their servers read the parameters directly.

    Args:
        world: None in a serial run.
        restored: the checkpoint's tree that this attempt goes on from, or None.
        restart: how often the run was started before without exact state; part of the seeds that may differ.
    """

    def __init__(
        self,
        plan: Plan,
        wiring: Wiring,
        transport: Transport,
        world: MpiWorld | None,
        *,
        restored: Mapping[str, Any] | None,
        restart: int,
    ) -> None:
        self._plan, self._wiring, self._transport, self._world = plan, wiring, transport, world
        self._restored, self._restart = restored, restart
        self._sources: dict[str, ParameterSource] = {}
        precision = plan.spec.trainers.precision
        self._autocast = torch.bfloat16 if precision == "bfloat16" else None

    # --- policies and parameters ---------------------------------------------------------------------------------

    def policy(self, name: str, device: torch.device) -> Policy:
        """A new network with the run's initial parameters, equal on every rank."""
        spec = self._plan.spec.policies[name]
        torch.manual_seed(seed_of(self._plan.spec.seed, "policy", list(self._plan.spec.policies).index(name)))
        module = load_module(spec.network.kind, "srlhpc.policies")
        policy: Policy = module.build(spec.network, policy_shapes(self._plan, name).kind, spec.normalize)
        return policy.to(device)

    def device(self, wanted: str) -> torch.device:
        """The first GPU that this rank sees, of those it was bound to, or the CPU."""
        if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
            return torch.device("cpu")
        if not torch.cuda.is_available():
            raise UserError(
                "trainers.device or policy_servers.device is cuda, but torch sees no GPU here (CUDA_VISIBLE_DEVICES is "
                f"{os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')!r}); is it built for them?"
            )
        device = torch.device("cuda", 0)
        torch.cuda.set_device(device)
        set_matmul_precision(device, self._plan.spec.trainers.precision)
        return device

    def _source(self, name: str, trainer: RolePlan, size: int) -> ParameterSource:
        plan = self._plan
        remote = [role for role in plan.subscribers(name) if role.rank != trainer.rank]
        links = [plan.link(Stream.PULLS, role, trainer, 0, name) for role in remote]
        pulls = [self._transport.inbox(links, PULL_LAYOUT)] if links else []
        outboxes = {
            role.address: self._transport.outbox(
                plan.link(Stream.PARAMETERS, trainer, role, 0, name),
                parameter_layout(size),
                slots=1,
                synchronous=False,
            )
            for role in remote
        }
        self._sources[name] = ParameterSource(size, pulls, outboxes)
        return self._sources[name]

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

    # --- roles ---------------------------------------------------------------------------------------------------

    def trainer(self, role: RolePlan) -> Trainer:
        plan, name = self._plan, role.policy or ""
        spec = plan.spec.policies[name]
        torch.set_num_threads(plan.spec.trainers.threads)
        device = self.device(plan.spec.trainers.device)
        serves = any(r.name == "policy_server" for r in plan.ranks[role.rank].roles)
        if not serves and not policy_shapes(plan, name).state:
            enable_cudnn_benchmark(device)  # all minibatches are of one size
        policy = self.policy(name, device)
        reducer = join_trainers(self._world, [t.rank for t in plan.trainers(name)], device)
        context = Context(
            reducer, device, self._autocast, seed_of(plan.spec.seed, "trainer", *map(ord, name), role.index)
        )
        algorithm = load_module(spec.algorithm.kind, "srlhpc.algorithms").build(spec.algorithm, policy, context)
        counters = Counters()
        if self._restored is not None:
            counters = load_part(self._part(name), policy, algorithm)
        first = role.index == 0
        return Trainer(
            role.label,
            self._settings(name),
            policy,
            algorithm,
            reducer,
            self._wiring.blocks(role),
            self._batches(name, device),
            source=self._source(name, role, vector_size(policy)) if first else None,
            parts=self._part_sender(role, policy, algorithm) if first else None,
            part_copy=self._part_copy(policy, algorithm, device) if first else None,
            lag_limiter=self._lag_limiter(role) if needs_grants(plan, name) else None,
            counters=counters,
            feeders={actor.address for actor, _ in plan.groups_fed(role)},
        )

    def _part_sender(self, role: RolePlan, policy: Policy, algorithm: Algorithm) -> PartSender:
        slots = slots_of(checkpoint_part(policy, algorithm, Counters()))
        return PartSender(self._wiring.part_outbox(role, slots))

    def _part_copy(self, policy: Policy, algorithm: Algorithm, device: torch.device) -> PartCopy | None:
        stream = copy_stream_to(device)
        return None if stream is None else PartCopy(part_tensors(policy, algorithm), stream)

    def _part(self, name: str) -> Mapping[str, Any]:
        assert self._restored is not None
        policies = self._restored["policies"]
        if name not in policies:
            raise UserError(f"the checkpoint has no policy '{name}' (it has {', '.join(policies)}); use `srlhpc run`")
        part: Mapping[str, Any] = policies[name]
        return part

    def _batches(self, name: str, device: torch.device) -> Batches:
        plan = self._plan
        layout, blocks, columns = block_layout(plan, name), batch_blocks(plan, name), block_fragments(plan, name)
        spec = plan.spec.policies[name].batch
        stream = copy_stream_to(device)
        return Batches(
            [Staging(layout, blocks, columns, device, stream) for _ in range(spec.buffers)],
            uses=spec.uses,
            max_policy_lag=oldest_trained(plan, name),
            queue=spec.queue,
        )

    def _settings(self, name: str) -> TrainerSettings:
        plan, spec = self._plan, self._plan.spec
        leads = name == plan.trained_policies[0]
        every = spec.checkpoint.every_updates or (SERIAL_CHECKPOINT_UPDATES if plan.serial else None)
        return TrainerSettings(
            policy=name,
            burn_in=spec.policies[name].batch.burn_in_steps,
            prefetch=spec.trainers.prefetch,
            stop_steps=spec.stop.steps if leads else None,
            stop_updates=spec.stop.updates if leads else None,
            checkpoint_updates=every if leads else None,
            holds=plan.serial,
        )

    def _lag_limiter(self, role: RolePlan) -> LagLimiter:
        plan, name = self._plan, role.policy or ""
        requests, grants = self._wiring.grant_ends(role)
        return LagLimiter(
            requests,
            grants,
            fragments=block_fragments(plan, name),
            batch=plan.spec.policies[name].batch.fragments,
            max_policy_lag=max_policy_lag(plan, name) or 0,
            uses=plan.spec.policies[name].batch.uses,
        )

    def policy_server(self, role: RolePlan) -> PolicyServer:
        plan = self._plan
        if not any(r.name == "trainer" for r in plan.ranks[role.rank].roles):
            torch.set_num_threads(plan.spec.policy_servers.threads)
        device = self.device(plan.spec.policy_servers.device)
        served = {
            seat.policy: made
            for seat in plan.seats
            if role.policy in (None, seat.policy) and (made := self._served(role, seat.policy, device)) is not None
        }
        return PolicyServer(role.label, served)

    def _served(self, role: RolePlan, name: str, device: torch.device) -> ServedPolicy | None:
        plan = self._plan
        policy = self.policy(name, device)
        subscription = self._subscription(name, role, vector_size(policy))
        ends = self._wiring.serving_ends(role, name)
        if ends is None:
            if subscription is not None:
                subscription.close()
            return None
        numbers = (role.index, list(plan.spec.policies).index(name), self._restart)
        generator = torch.Generator(device).manual_seed(seed_of(plan.spec.seed, "acting", *numbers))
        return ServedPolicy(
            policy,
            subscription,
            *ends,
            rows=plan.spec.actors.environments * len(plan.seat(name).agents),
            outputs=tuple(policy_shapes(plan, name).outputs),
            device=device,
            autocast=self._autocast,
            generator=generator,
        )

    def evaluator(self, role: RolePlan) -> Evaluator:
        plan, spec = self._plan, self._plan.spec
        torch.set_num_threads(1)
        environment = load_module(spec.environment.factory, "envs").build(
            spec.environment, copies=spec.evaluators.environments, seed=seed_of(spec.seed, "evaluation", role.index)
        )
        players: dict[str, Player] = {}
        subscriptions: dict[str, ParameterSubscription] = {}
        for seat in plan.seats:
            policy = self.policy(seat.policy, torch.device("cpu"))
            players[seat.policy] = Player(policy, seat.kind, seat.agents, spec.evaluators.environments, self._autocast)
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
            seed=lambda version: seed_of(spec.seed, "evaluation", role.index, version),
            episode_summary=episode_summary(plan),
            # What the evaluator's environments draw must not depend on the actors', nor theirs on it.
            around=OwnGenerators(seed_of(spec.seed, "evaluating", role.index)) if plan.serial else None,
            most_steps=spec.evaluators.max_episode_steps,
        )
