"""A plan: which rank plays which role, who feeds and serves whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
    """A policy's place in every environment: which agents it plays, and which it learns from.

    A policy has one; where matches are set, one for each side that it plays.
    """

    policy: str
    kind: str
    agents: tuple[int, ...]
    """Places in the kind's agent axis."""
    trained: tuple[int, ...]
    """Places in `agents` whose records are trained on."""
    side: int | None = None
    """Its place among the sides of matches; None: there are none."""

    @property
    def name(self) -> str:
        """Its name for people and links: `default`, of a side `default-0`."""
        return self.policy if self.side is None else f"{self.policy}-{self.side}"


@dataclass(frozen=True)
class GroupSeat:
    """A seat in the environments of one group."""

    actor: RolePlan
    group: int
    """Its number among all groups."""
    seat: Seat


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
        """The policy's seat; of several, which are alike but for the agents, the first."""
        return self.seats_of(policy)[0]

    @cached_property
    def whole_seats(self) -> tuple[Seat, ...]:
        """The seats without sides: all that each policy plays, where it plays alone."""
        seats = {policy: found for policy, found in self._seats_of.items() if found}
        return tuple(_joined(found) if len(found) > 1 else found[0] for found in seats.values())

    def seats_of(self, policy: str) -> tuple[Seat, ...]:
        return self._seats_of[policy]

    @cached_property
    def _seats_of(self) -> dict[str, tuple[Seat, ...]]:
        return {name: tuple(seat for seat in self.seats if seat.policy == name) for name in self.spec.policies}

    def agents_of(self, seat: Seat) -> list[str]:
        """Names of a seat's agents."""
        return [self.spaces.kind(seat.kind).agents[place] for place in seat.agents]

    def kind_of(self, policy: str) -> Kind:
        """The kind of agents that a policy plays, labels as the expert of who plays them, or meets in evaluation."""
        played = {seat.policy: self.spaces.kind(seat.kind) for seat in self.seats}
        if policy in played:
            return played[policy]
        rules = {name: self.spec.policies[name].algorithm.needs(kind) for name, kind in played.items()}
        labelled = next((name for name, needs in rules.items() if needs.expert == policy), None)
        return self.spaces.kinds[0] if labelled is None else played[labelled]

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

    def group_seats(self, policy: str, ranks: Collection[int] | None = None) -> Iterator[GroupSeat]:
        """All seats of a policy, one group after the other; of the actors of some ranks only, if these are given."""
        for actor, place in self.groups:
            if ranks is None or actor.rank in ranks:
                group = self.group_number(actor, place)
                yield from (GroupSeat(actor, group, seat) for seat in self.seats_of(policy))

    def seat_number(self, group: int, seat: Seat) -> int:
        """A seat's place among those of its policy in all groups; without matches the number of the group."""
        seats = self.seats_of(seat.policy)
        return group * len(seats) + seats.index(seat)

    def is_trained(self, group: int, seat: Seat) -> bool:
        """Whether a group's records of a seat are trained on: in matches against the past, of one side alone."""
        if not seat.trained or self.measures(group):
            return False
        learning = self.learning_seat(group)
        return learning is None or learning is seat

    def granted_together(self, group: int, seat: Seat) -> tuple[Seat, ...]:
        """Seats of the same policy that are trained in a group; the first asks for the fragments of all of them.

        Each asking for itself, groups could wait for each other's second one for ever.
        """
        return tuple(each for each in self.seats_of(seat.policy) if self.is_trained(group, each))

    def measures(self, group: int) -> bool:
        """Whether versions play each other in a group, and nobody learns there."""
        return self.spec.matches is not None and self.spec.matches.part_of(group)[0] == "payoffs"

    def learning_seat(self, group: int) -> Seat | None:
        """The only seat that learns in a group whose other sides are played by the past; None: all do, or none does."""
        part, place = ("self_play", 0) if self.spec.matches is None else self.spec.matches.part_of(group)
        if part != "past":
            return None
        trained = [seat for seat in self.seats if seat.trained]
        # Each once in as many groups, in another order every time: trainers are fed in turn, too.
        return trained[(place + place // len(trained)) % len(trained)]

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

    @property
    def sharded_policies(self) -> tuple[str, ...]:
        """Policies that are drawn from several replay ranks at the same pace, so that each may wait for the others."""
        return tuple(policy for policy in self.spec.policies if len(self.replays(policy)) > 1)

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
        return sinks[self._feeding_places[policy].get(group, group) % len(sinks)]

    @cached_property
    def _feeding_places(self) -> dict[str, dict[int, int]]:
        """Policy to the place of each group among those that feed it; empty where all do."""
        if self.spec.matches is None:
            return {policy: {} for policy in self.spec.policies}
        feeding = {
            policy: dict.fromkeys(s.group for s in self.group_seats(policy) if self.is_trained(s.group, s.seat))
            for policy in self.spec.policies
        }
        return {policy: {group: place for place, group in enumerate(groups)} for policy, groups in feeding.items()}

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

    def seat_link(self, stream: Stream, source: RolePlan, destination: RolePlan, group: int, seat: Seat) -> Link:
        """The link of a group's seat."""
        if seat.side is None:
            return self.link(stream, source, destination, group, seat.policy)
        _check_sends(source, stream)
        return Link(
            stream, source.address, destination.address, group % self.spec.actors.ring * len(self.seats) + seat.side
        )

    def part_link(self, role: RolePlan) -> Link:
        """The link of a role's part of a checkpoint, each with an index of its own: several may come from one rank."""
        _check_sends(role, Stream.PARTS)
        senders = [other.address for other in self.roles if "parts" in other.row.sends]
        return Link(Stream.PARTS, role.address, self.coordinator.address, senders.index(role.address))

    def subscribers(self, policy: str) -> tuple[RolePlan, ...]:
        """Roles that act with the policy's parameters."""
        return tuple(role for role in self.roles if "pulls" in role.row.sends and role.policy in (None, policy))

    def feeders(self, sink: RolePlan) -> tuple[GroupSeat, ...]:
        """Seats whose blocks go to a sink."""
        return self._feeders.get(sink.address, ())

    @cached_property
    def _feeders(self) -> dict[int, tuple[GroupSeat, ...]]:
        """Address of a sink to its feeders; in one pass, since there may be tens of thousands of groups."""
        found: dict[int, list[GroupSeat]] = {}
        for policy in self.fed_policies:
            for each in self.group_seats(policy):
                if self.is_trained(each.group, each.seat):
                    found.setdefault(self.sink_of(each.group, policy).address, []).append(each)
        return {address: tuple(feeders) for address, feeders in found.items()}

    def served(self, server: RolePlan, policy: str) -> tuple[GroupSeat, ...]:
        """Seats of a policy that a policy server acts for."""
        return tuple(each for each in self.group_seats(policy) if self.server_of(each.group, policy) is server)

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
                | ({} if s.side is None else {"side": s.side})
                for s in self.seats
            ],
            "notes": list(self.notes),
        }


def _joined(seats: Sequence[Seat]) -> Seat:
    """One seat on the agents of several, in their order in the kind."""
    first = seats[0]
    trained = {seat.agents[i] for seat in seats for i in seat.trained}
    agents = tuple(sorted(place for seat in seats for place in seat.agents))
    return Seat(first.policy, first.kind, agents, tuple(i for i, place in enumerate(agents) if place in trained))


def _check_sends(role: RolePlan, stream: Stream) -> None:
    assert stream.name.lower() in role.row.sends, f"{role.label} does not send {stream.name}; see plan/roles.py"
