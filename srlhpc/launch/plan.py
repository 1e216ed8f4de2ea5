"""From a spec to ranks: who plays which role, who feeds and serves whom, how messages lie in memory. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from srlhpc.comm.channel import Link, Stream
from srlhpc.data.blocks import PolicyShapes, block_layout, reply_layout, request_layout
from srlhpc.data.layout import Layout
from srlhpc.environment import Spaces
from srlhpc.objects import UserError
from srlhpc.specs.experiment import ExperimentSpec, PolicySpec

RoleName = Literal["coordinator", "trainer", "policy_server", "evaluator", "actor"]

SENDING_SLOTS = 2
"""Blocks of one actor that may be under way to one trainer, beside those being filled."""
MAX_MESSAGE_BYTES = (1 << 31) - 1


@dataclass(frozen=True)
class RolePlan:
    """One role. Its address names it in links; several roles may share a rank."""

    name: RoleName
    index: int
    address: int
    rank: int
    policy: str | None = None
    """Of a trainer: the policy it trains. Of a policy server: the only one it serves, or None for all."""

    @property
    def label(self) -> str:
        """For people: `actor-3`, `trainer-default-0`."""
        return f"trainer-{self.policy}-{self.index}" if self.name == "trainer" else f"{self.name}-{self.index}"


@dataclass(frozen=True)
class RankPlan:
    """One MPI rank and its roles; the first gives it its name."""

    rank: int
    roles: tuple[RolePlan, ...]

    @property
    def label(self) -> str:
        return self.roles[0].label

    @property
    def needs_torch(self) -> bool:
        return any(role.name in ("trainer", "policy_server", "evaluator") for role in self.roles)


@dataclass(frozen=True)
class Seat:
    """A policy's place in every copy of the environment: which agents it plays, and which it learns from."""

    policy: str
    kind: str
    agents: tuple[int, ...]
    """Places in the kind's agent axis."""
    trained: tuple[int, ...]
    """Places in `agents` whose records are trained on."""


@dataclass(frozen=True)
class Plan:
    """Everything that follows from a spec and its environment's spaces; equal on every rank."""

    spec: ExperimentSpec
    spaces: Spaces
    serial: bool
    roles: tuple[RolePlan, ...]
    seats: tuple[Seat, ...]
    notes: tuple[str, ...]

    @cached_property
    def ranks(self) -> tuple[RankPlan, ...]:
        size = 1 + max(role.rank for role in self.roles)
        by_rank: list[list[RolePlan]] = [[] for _ in range(size)]
        for role in self.roles:
            by_rank[role.rank].append(role)
        return tuple(RankPlan(rank, tuple(roles)) for rank, roles in enumerate(by_rank))

    @property
    def coordinator(self) -> RolePlan:
        return self.roles[0]

    def spokesman(self, rank: int) -> RolePlan | None:
        """The role in whose name a rank reports: its first that is not the coordinator."""
        return next((role for role in self.ranks[rank].roles if role.name != "coordinator"), None)

    def addresses(self, rank: int) -> tuple[int, ...]:
        """Addresses of the rank's roles."""
        return tuple(role.address for role in self.ranks[rank].roles)

    def named(self, name: RoleName) -> tuple[RolePlan, ...]:
        """All roles of that name, in order."""
        return tuple(role for role in self.roles if role.name == name)

    def trainers(self, policy: str) -> tuple[RolePlan, ...]:
        return tuple(role for role in self.named("trainer") if role.policy == policy)

    def seat(self, policy: str) -> Seat:
        return next(seat for seat in self.seats if seat.policy == policy)

    @property
    def trained_policies(self) -> tuple[str, ...]:
        """Policies that have trainers, in the spec's order."""
        return tuple(name for name in self.spec.policies if self.trainers(name))

    # --- who feeds and serves whom -------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[tuple[RolePlan, int], ...]:
        """Every group: its actor and its place in the actor's ring."""
        return tuple((actor, place) for actor in self.named("actor") for place in range(self.spec.actors.ring))

    def group_number(self, actor: RolePlan, place: int) -> int:
        """The group's place among all groups; the number that its messages carry."""
        return actor.index * self.spec.actors.ring + place

    def trainer_of(self, group: int, policy: str) -> RolePlan:
        """The trainer that a group's blocks go to."""
        trainers = self.trainers(policy)
        return trainers[group % len(trainers)]

    def server_of(self, group: int, policy: str) -> RolePlan:
        """The policy server that acts for a group."""
        servers = [role for role in self.named("policy_server") if role.policy in (None, policy)]
        match self.spec.actors.inference.kind:
            case "inline":
                return servers[group // self.spec.actors.ring]
            case "server" | "trainer":
                return servers[group % len(servers)]

    def link(self, stream: Stream, source: RolePlan, destination: RolePlan, group: int = 0, policy: str = "") -> Link:
        """The link of a group and policy, or of a whole role."""
        policies = list(self.spec.policies)
        place = policies.index(policy) if policy else 0
        return Link(stream, source.address, destination.address, group % self.spec.actors.ring * len(policies) + place)

    def subscribers(self, policy: str) -> tuple[RolePlan, ...]:
        """Roles that act with the policy's parameters."""
        return tuple(
            role
            for role in self.roles
            if role.name == "evaluator" or (role.name == "policy_server" and role.policy in (None, policy))
        )

    def groups_fed(self, trainer: RolePlan) -> tuple[tuple[RolePlan, int], ...]:
        """Groups (actor, number) whose blocks go to a trainer."""
        numbered = ((actor, self.group_number(actor, place)) for actor, place in self.groups)
        return tuple(
            (actor, group) for actor, group in numbered if self.trainer_of(group, trainer.policy or "") is trainer
        )

    def groups_served(self, server: RolePlan, policy: str) -> tuple[tuple[RolePlan, int], ...]:
        """Groups (actor, number) that a policy server acts for."""
        numbered = ((actor, self.group_number(actor, place)) for actor, place in self.groups)
        return tuple((actor, group) for actor, group in numbered if self.server_of(group, policy) is server)

    def pool_link(self, stream: Stream, source: RolePlan, destination: RolePlan) -> Link:
        """A link into a pool that any slot of the receiver takes."""
        return Link(stream, source.address, destination.address, 0)

    def needs_grants(self, policy: str) -> bool:
        """Whether fragments of the policy start only when granted (strict mode)."""
        return bool(self.trainers(policy)) and (self.serial or self.spec.policies[policy].max_policy_lag == 0)

    # --- layouts and memory --------------------------------------------------------------------------------------

    def shapes(self, policy: str) -> PolicyShapes:
        network = self.spec.policies[policy].network
        return PolicyShapes(
            self.spaces.kind(self.seat(policy).kind), network.state_arrays(), network.output_arrays()
        )

    def records(self, policy: str) -> int:
        """Records of one fragment, burn-in included."""
        batch = self.spec.policies[policy].batch
        return batch.burn_in_steps + batch.fragment_steps

    def block_layout(self, policy: str) -> Layout:
        seat = self.seat(policy)
        return block_layout(
            self.shapes(policy), self.records(policy), self.spec.actors.environments, len(seat.trained)
        )

    def request_layout(self, policy: str) -> Layout:
        return request_layout(self.shapes(policy), self.spec.actors.environments, len(self.seat(policy).agents))

    def reply_layout(self, policy: str) -> Layout:
        return reply_layout(self.shapes(policy), self.spec.actors.environments, len(self.seat(policy).agents))

    def block_fragments(self, policy: str) -> int:
        """Fragments that one block brings."""
        return self.spec.actors.environments * len(self.seat(policy).trained)

    def batch_blocks(self, policy: str) -> int:
        """Blocks that make one trainer's batch."""
        return self.spec.policies[policy].batch.fragments // self.block_fragments(policy)

    def pool_slots(self, policy: str) -> int:
        """Slots of a trainer's pool of blocks: a batch and some, so that senders need not wait for an update."""
        return self.batch_blocks(policy) + 4

    def outbox_slots(self, actor: RolePlan, trainer: RolePlan) -> int:
        """Slots of an actor towards a trainer: one for each group that fills one, and those under way."""
        filling = sum(
            self.trainer_of(self.group_number(actor, place), trainer.policy or "") is trainer
            for place in range(self.spec.actors.ring)
        )
        return filling + SENDING_SLOTS

    @cached_property
    def digest(self) -> str:
        """Equal where spec, spaces and layouts are equal; compared on all ranks at start."""
        data = self.to_json() | {"layouts": [self.block_layout(seat.policy).digest for seat in self.seats]}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """For the run directory and for people."""
        return {
            "serial": self.serial,
            "spec": self.spec.model_dump(mode="json"),
            "spaces": self.spaces.to_json(),
            "ranks": [
                {"rank": rank.rank, "label": rank.label, "roles": [role.label for role in rank.roles]}
                for rank in self.ranks
            ],
            "seats": [
                {"policy": s.policy, "kind": s.kind, "agents": list(s.agents), "trained": list(s.trained)}
                for s in self.seats
            ],
            "notes": list(self.notes),
        }


def plan(spec: ExperimentSpec, spaces: Spaces, *, serial: bool = False) -> Plan:
    """Works out the plan, or says why the spec cannot work.

    Args:
        spec: what the user wrote.
        spaces: of the spec's environment.
        serial: all roles in one process, in lock-step.

    Raises:
        UserError: agents without a policy, a batch that no whole number of blocks makes, too few groups, ...
    """
    seats = tuple(_seats(spec, spaces))
    roles, notes = _roles(spec, seats, serial)
    made = Plan(spec, spaces, serial, roles, seats, tuple(notes))
    for policy in made.trained_policies:
        _check_batch(made, policy)
    for seat in seats:
        spec.policies[seat.policy].network.check(spaces.kind(seat.kind))
        _check_message_sizes(made, seat.policy)
    return made


def _seats(spec: ExperimentSpec, spaces: Spaces) -> Iterator[Seat]:
    places: dict[str, dict[str, list[tuple[int, bool]]]] = {}
    for kind in spaces.kinds:
        for place, agent in enumerate(kind.agents):
            entry = next((e for e in spec.agents if re.fullmatch(e.match, agent)), None)
            if entry is None:
                raise UserError(
                    f"agents: no entry matches agent '{agent}' of the environment; add one, for example "
                    f"{{match: '.*', policy: {next(iter(spec.policies))}}}"
                )
            places.setdefault(entry.policy, {}).setdefault(kind.name, []).append((place, entry.train))
    for policy in spec.policies:
        kinds = places.get(policy)
        if not kinds:
            known = ", ".join(agent for kind in spaces.kinds for agent in kind.agents)
            raise UserError(f"policies.{policy}: no agent uses it; the environment's agents are {known}")
        if len(kinds) > 1:
            raise UserError(
                f"policies.{policy}: plays agents of different observation or action spaces "
                f"({', '.join(kinds)}); give each its own policy in `agents`"
            )
        ((kind_name, agents),) = kinds.items()
        yield Seat(
            policy,
            kind_name,
            tuple(place for place, _ in agents),
            tuple(i for i, (_, train) in enumerate(agents) if train),
        )


def _roles(spec: ExperimentSpec, seats: tuple[Seat, ...], serial: bool) -> tuple[tuple[RolePlan, ...], list[str]]:
    roles: list[RolePlan] = []
    notes: list[str] = []
    next_rank = 0

    def add(name: RoleName, index: int, policy: str | None = None, *, on: int | None = None) -> int:
        nonlocal next_rank
        rank = 0 if serial else next_rank if on is None else on
        next_rank = max(next_rank, rank + 1)
        roles.append(RolePlan(name, index, len(roles), rank, policy))
        return rank

    add("coordinator", 0)
    trained = [seat.policy for seat in seats if seat.trained]
    if not trained:
        raise UserError("agents: no entry has `train: true`, so nothing would be trained")
    if serial and spec.trainers.ranks > 1:
        raise UserError(f"trainers.ranks: is {spec.trainers.ranks}; a serial run has one trainer per policy")
    kind = spec.actors.inference.kind
    servers = 0
    for policy in trained:
        for index in range(spec.trainers.ranks):
            rank = add("trainer", index, policy)
            if kind == "trainer":
                add("policy_server", servers, policy, on=rank)
                servers += 1
    if kind == "trainer" and len(trained) < len(seats):
        raise UserError("actors.inference.kind: is trainer; every policy must be trained then")
    if kind == "server":
        for index in range(spec.policy_servers.ranks):
            add("policy_server", index)
    elif "policy_servers" in spec.model_fields_set:
        notes.append(f"policy_servers is not used: with actors.inference.kind {kind}, no rank serves only actions")
    for index in range(spec.evaluators.ranks):
        add("evaluator", index)
    for index in range(spec.actors.ranks):
        rank = add("actor", index)
        if kind == "inline":
            add("policy_server", index, on=rank)
    if serial and spec.checkpoint.every_updates is None:
        notes.append(
            f"serial runs count updates, not seconds: a checkpoint every {SERIAL_CHECKPOINT_UPDATES} updates; "
            "set checkpoint.every_updates to choose"
        )
    return tuple(roles), notes


SERIAL_CHECKPOINT_UPDATES = 50
"""Updates between checkpoints of a serial run whose spec gives only seconds."""


def _check_batch(made: Plan, policy: str) -> None:
    spec: PolicySpec = made.spec.policies[policy]
    brought, wanted = made.block_fragments(policy), spec.batch.fragments
    if wanted % brought:
        raise UserError(
            f"policies.{policy}.batch.fragments: is {wanted}; one block brings {brought} fragments "
            f"({made.spec.actors.environments} environments x {len(made.seat(policy).trained)} trained agents), "
            f"and a batch is a whole number of blocks: use a multiple of {brought}, or change actors.environments"
        )
    groups, trainers = len(made.groups), len(made.trainers(policy))
    if groups < trainers:
        raise UserError(
            f"actors: {groups} groups (ranks x ring) cannot feed {trainers} trainers of policy {policy}; "
            "raise actors.ranks or actors.ring"
        )
    spec.algorithm.check(spec.batch, spec.network)


def _check_message_sizes(made: Plan, policy: str) -> None:
    for name, layout in (("block", made.block_layout(policy)), ("request", made.request_layout(policy))):
        if layout.size_bytes > MAX_MESSAGE_BYTES:
            raise UserError(
                f"policies.{policy}: one {name} has {layout.size_bytes / 1e9:.1f} GB; at most 2 GiB fit in a message: "
                "lower actors.environments or batch.fragment_steps"
            )


def memory_bytes(made: Plan) -> Mapping[str, int]:
    """Bytes of slots and batch buffers by role label (without libraries, networks and simulators)."""
    result: dict[str, int] = {}
    for trainer in made.named("trainer"):
        policy = trainer.policy or ""
        block = made.block_layout(policy).size_bytes
        staging = 2 * made.batch_blocks(policy)
        result[trainer.label] = block * (made.pool_slots(policy) + staging)
    for actor in made.named("actor"):
        result[actor.label] = sum(
            made.block_layout(trainer.policy or "").size_bytes * made.outbox_slots(actor, trainer)
            for trainer in made.named("trainer")
            if made.outbox_slots(actor, trainer) > SENDING_SLOTS
        )
    return result


def plan_table(made: Plan) -> str:
    """The plan for people: ranks, groups, blocks, memory, descriptors."""
    memory = memory_bytes(made)
    lines = [f"{'rank':>4}  {'role':24} {'buffers MB':>10}  feeds"]
    for rank in made.ranks:
        size = sum(memory.get(role.label, 0) for role in rank.roles) / 1e6
        names = " + ".join(role.label for role in rank.roles)
        lines.append(f"{rank.rank:>4}  {names:24} {size:>10.1f}  {_feeds(made, rank)}".rstrip())
    lines.append("")
    for seat in made.seats:
        block = made.block_layout(seat.policy).size_bytes
        lines.append(
            f"policy {seat.policy}: plays {len(seat.agents)} of kind {seat.kind} (trains {len(seat.trained)}); "
            f"block {block / 1e6:.2f} MB = {made.block_fragments(seat.policy)} fragments x "
            f"{made.records(seat.policy)} records; request {made.request_layout(seat.policy).size_bytes / 1e3:.1f} kB"
        )
        if made.trainers(seat.policy):
            lines.append(
                f"  batch: {made.batch_blocks(seat.policy)} blocks a trainer; pool of "
                f"{made.pool_slots(seat.policy)} slots"
            )
    lines.append(f"descriptors: about {30 + len(made.ranks)} per rank")
    lines.extend(f"note: {note}" for note in made.notes)
    return "\n".join(lines)


def _feeds(made: Plan, rank: RankPlan) -> str:
    actors = [role for role in rank.roles if role.name == "actor"]
    groups = [made.group_number(actor, place) for actor in actors for place in range(made.spec.actors.ring)]
    if not groups:
        return ""
    trainers = {made.trainer_of(g, p).label for g in groups for p in made.trained_policies}
    servers = {made.server_of(g, s.policy).label for g in groups for s in made.seats}
    return f"{', '.join(sorted(trainers))}; served by {', '.join(sorted(servers))}"
