"""A plan: which rank plays which role, who feeds and serves whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from srlhpc.comm.channel import Link, Stream
from srlhpc.environment import Kind, Spaces
from srlhpc.plan.roles import ROLES, RoleRow
from srlhpc.specs.experiment import ExperimentSpec

_SERIAL_CHECKPOINT_UPDATES = 50
_SERIAL_REPLAY_CHECKPOINT_UPDATES = 2000
"""With replay updates are many and small, and a checkpoint holds what is known of every window."""


@dataclass(frozen=True)
class RolePlan:
    """One role. Its address names it in links; several roles may share a rank."""

    name: str
    """One of `ROLES`."""
    index: int
    address: int
    rank: int
    policy: str | None = None
    """Policy that a trainer trains or whose records a replay rank keeps; the only one that a policy server serves, or
    None for all."""

    @property
    def label(self) -> str:
        """The role's name for people: `actor-3`, `trainer-default-0`."""
        return f"{self.name}-{self.policy}-{self.index}" if self.row.per_policy else f"{self.name}-{self.index}"

    @property
    def row(self) -> RoleRow:
        return ROLES[self.name]


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
        return any(role.row.needs_torch for role in self.roles)

    @property
    def needs_environment(self) -> bool:
        return any(role.row.needs_environment for role in self.roles)

    @property
    def is_essential(self) -> bool:
        """Whether its death ends the step."""
        return self.roles[0].row.is_essential


@dataclass(frozen=True)
class Seat:
    """A policy's place in every environment: which agents it plays, and which it learns from."""

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

    def reporting_role(self, rank: int) -> RolePlan | None:
        """The role in whose name a rank reports: its first that reports at all; None for the coordinator's alone."""
        return next((role for role in self.ranks[rank].roles if "reports" in role.row.sends), None)

    def addresses(self, rank: int) -> tuple[int, ...]:
        """Addresses of the rank's roles."""
        return tuple(role.address for role in self.ranks[rank].roles)

    def named(self, name: str) -> tuple[RolePlan, ...]:
        """All roles of that name, in order."""
        return self._by_name.get(name, ())

    @cached_property
    def _by_name(self) -> dict[str, tuple[RolePlan, ...]]:
        found: dict[str, list[RolePlan]] = {}
        for role in self.roles:
            found.setdefault(role.name, []).append(role)
        return {name: tuple(roles) for name, roles in found.items()}

    def trainers(self, policy: str) -> tuple[RolePlan, ...]:
        return self._trainers.get(policy, ())

    @cached_property
    def _trainers(self) -> dict[str, tuple[RolePlan, ...]]:
        return {name: tuple(r for r in self.named("trainer") if r.policy == name) for name in self.spec.policies}

    @cached_property
    def _servers(self) -> dict[str, tuple[RolePlan, ...]]:
        """Policy servers by policy; one may serve several."""
        servers = self.named("policy_server")
        return {name: tuple(r for r in servers if r.policy in (None, name)) for name in self.spec.policies}

    def seat(self, policy: str) -> Seat:
        return next(seat for seat in self.seats if seat.policy == policy)

    def kind_of(self, policy: str) -> Kind:
        """The kind of agents that a policy plays, or labels as the expert of who plays them."""
        played = {seat.policy: self.spaces.kind(seat.kind) for seat in self.seats}
        if policy in played:
            return played[policy]
        rules = {name: self.spec.policies[name].algorithm.needs(kind) for name, kind in played.items()}
        return played[next(name for name, needs in rules.items() if needs.expert == policy)]

    @property
    def serial_checkpoint_updates(self) -> int:
        """Updates between checkpoints of a serial run whose spec gives only seconds."""
        return _SERIAL_REPLAY_CHECKPOINT_UPDATES if self.named("replay") else _SERIAL_CHECKPOINT_UPDATES

    @property
    def trained_policies(self) -> tuple[str, ...]:
        """Policies that have trainers, in the spec's order."""
        return tuple(name for name in self.spec.policies if self.trainers(name))

    @property
    def fed_policies(self) -> tuple[str, ...]:
        """Trained policies that learn from what actors play, and not from files, in the spec's order."""
        return tuple(name for name in self.trained_policies if self.sinks(name))

    # --- who feeds and serves whom -------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[tuple[RolePlan, int], ...]:
        """Every group: its actor and its place in the actor's ring."""
        return tuple((actor, place) for actor in self.named("actor") for place in range(self.spec.actors.ring))

    def group_number(self, actor: RolePlan, place: int) -> int:
        """The group's place among all groups; the number that its messages carry."""
        return actor.index * self.spec.actors.ring + place

    def sinks(self, policy: str) -> tuple[RolePlan, ...]:
        """Roles that the policy's blocks go to: its replay ranks, else its trainers, who learn from each block as it
        comes; none where they learn from files."""
        if self.spec.policies[policy].episodes is not None:
            return ()
        return self.replays(policy) or self.trainers(policy)

    def replays(self, policy: str) -> tuple[RolePlan, ...]:
        """Roles that keep the policy's blocks and draw from them; none where each is learnt from as it comes."""
        return self._replays.get(policy, ())

    @cached_property
    def _replays(self) -> dict[str, tuple[RolePlan, ...]]:
        return {name: tuple(r for r in self.named("replay") if r.policy == name) for name in self.spec.policies}

    def shards_of(self, trainer: RolePlan) -> tuple[RolePlan, ...]:
        """Replay ranks that a trainer draws from, in equal parts."""
        policy = trainer.policy or ""
        return self.replays(policy)[trainer.index :: len(self.trainers(policy))]

    def drawer_of(self, replay: RolePlan) -> RolePlan:
        """The trainer that draws from a replay rank."""
        trainers = self.trainers(replay.policy or "")
        return trainers[replay.index % len(trainers)]

    def sink_of(self, group: int, policy: str) -> RolePlan:
        """The role that a group's blocks go to; it also grants the group its fragments."""
        sinks = self.sinks(policy)
        return sinks[group % len(sinks)]

    def server_of(self, group: int, policy: str) -> RolePlan:
        """The policy server that acts for a group."""
        servers = self._servers[policy]
        match self.spec.actors.inference.kind:
            case "inline":
                return servers[group // self.spec.actors.ring]
            case "server" | "trainer":
                return servers[group % len(servers)]

    def link(self, stream: Stream, source: RolePlan, destination: RolePlan, group: int = 0, policy: str = "") -> Link:
        """The link of a group and policy, or of a whole role."""
        _check_sends(source, stream)
        policies = list(self.spec.policies)
        place = policies.index(policy) if policy else 0
        return Link(stream, source.address, destination.address, group % self.spec.actors.ring * len(policies) + place)

    def part_link(self, role: RolePlan) -> Link:
        """The link of a role's part of a checkpoint, each with an index of its own: several may come from one rank."""
        _check_sends(role, Stream.PARTS)
        senders = [other.address for other in self.roles if "parts" in other.row.sends]
        return Link(Stream.PARTS, role.address, self.coordinator.address, senders.index(role.address))

    def subscribers(self, policy: str) -> tuple[RolePlan, ...]:
        """Roles that act with the policy's parameters."""
        return tuple(role for role in self.roles if "pulls" in role.row.sends and role.policy in (None, policy))

    def groups_fed(self, sink: RolePlan) -> tuple[tuple[RolePlan, int], ...]:
        """Groups (actor, number) that feed a sink."""
        numbered = ((actor, self.group_number(actor, place)) for actor, place in self.groups)
        return tuple((actor, group) for actor, group in numbered if self.sink_of(group, sink.policy or "") is sink)

    def groups_served(self, server: RolePlan, policy: str) -> tuple[tuple[RolePlan, int], ...]:
        """Groups (actor, number) that a policy server acts for."""
        numbered = ((actor, self.group_number(actor, place)) for actor, place in self.groups)
        return tuple((actor, group) for actor, group in numbered if self.server_of(group, policy) is server)

    def pool_link(self, stream: Stream, source: RolePlan, destination: RolePlan) -> Link:
        """A link into a pool that any slot of the receiver takes."""
        _check_sends(source, stream)
        return Link(stream, source.address, destination.address, 0)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the run directory and for people."""
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


def _check_sends(role: RolePlan, stream: Stream) -> None:
    assert stream.name.lower() in role.row.sends, f"{role.label} does not send {stream.name}; see plan/roles.py"
