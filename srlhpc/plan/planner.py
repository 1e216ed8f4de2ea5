"""Turns a spec into a plan, or says why it cannot work. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from srlhpc.comm.acquisition import must_not_wait
from srlhpc.environment import Kind, Spaces
from srlhpc.errors import UserError, counted, did_you_mean
from srlhpc.plan.contract_check import check_contract, check_fields
from srlhpc.plan.expert_check import check_expert
from srlhpc.plan.exploration import check_exploration, columns, exploration_notes
from srlhpc.plan.lag_limits import max_policy_lag
from srlhpc.plan.layouts import block_layout, fragment, policy_shapes, request_layout, windows_layout
from srlhpc.plan.plan import Plan, RolePlan, Seat
from srlhpc.plan.replay_check import check_replay
from srlhpc.plan.roles import ROLES
from srlhpc.plan.sizes import block_fragments
from srlhpc.plan.turn_check import check_turns
from srlhpc.specs.contracts import Needs
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.named_modules import AlgorithmSettings

_MAX_MESSAGE_BYTES = (1 << 31) - 1
_SERVERS_BESIDE = {"trainer": "trainer", "inline": "actor"}
"""Roles on whose ranks the policy servers are, by `actors.inference.kind`; else they have their own."""


def make_plan(spec: ExperimentSpec, spaces: Spaces, *, serial: bool = False) -> Plan:
    """Works out the plan, or says why the spec cannot work.

    Args:
        spec: what the user wrote.
        spaces: of the spec's environment.
        serial: all roles in one process, in lock-step.

    Raises:
        UserError: agents without a policy, a batch that no whole number of blocks makes, too few groups, ...
    """
    seats = tuple(_seats(spec, spaces))
    plan = Plan(spec, spaces, serial, _roles(spec, seats, serial), seats, ())
    for seat in seats:
        _check_policy(plan, seat)
    _check_acting(plan)
    plan = replace(plan, notes=(*_notes(plan), *_lag_notes(plan), *exploration_notes(plan)))
    for policy in plan.trained_policies:
        if not plan.replays(policy) and plan.sinks(policy):
            _check_batch(plan, policy)
    for policy in plan.trained_policies:
        check_turns(plan, policy)
        if plan.replays(policy):
            check_replay(plan, policy)
        else:
            _check_feedback(plan, policy)
    for seat in seats:
        _check_message_sizes(plan, seat.policy)
    return plan


def _seats(spec: ExperimentSpec, spaces: Spaces) -> Iterator[Seat]:
    places: dict[str, dict[str, list[tuple[int, bool]]]] = {}
    for kind in spaces.kinds:
        for place, agent in enumerate(kind.agents):
            # The first entry that matches counts.
            entry = next((e for e in spec.agents if re.fullmatch(e.match, agent)), None)
            if entry is None:
                raise UserError(
                    f"agents: no entry matches agent '{agent}' of the environment; add one, for example "
                    f"{{match: '.*', policy: {next(iter(spec.policies))}}}"
                )
            places.setdefault(entry.policy, {}).setdefault(kind.name, []).append((place, entry.train))
    experts = _experts(spec, {policy: spaces.kind(next(iter(kinds))) for policy, kinds in places.items()})
    for policy in spec.policies:
        kinds = places.get(policy)
        if not kinds and policy in experts:
            continue
        if not kinds:
            known = ", ".join(agent for kind in spaces.kinds for agent in kind.agents)
            raise UserError(f"policies.{policy}: no agent uses it; the environment's agents are {known}")
        if len(kinds) > 1:
            raise UserError(
                f"policies.{policy}: plays agents of different observation or action spaces "
                f"({', '.join(kinds)}){_remedy(spec.policies[policy].algorithm, spaces.kind(next(iter(kinds))))}"
            )
        ((kind_name, agents),) = kinds.items()
        yield Seat(
            policy,
            kind_name,
            tuple(place for place, _ in agents),
            tuple(i for i, (_, train) in enumerate(agents) if train),
        )


def _experts(spec: ExperimentSpec, kinds: Mapping[str, Kind]) -> set[str]:
    """Policies that label what others play, of those that play agents of a kind."""
    found = {}
    for policy, kind in kinds.items():
        needs = _needs(spec.policies[policy].algorithm, kind)
        if needs is not None and needs.expert is not None:
            found[needs.expert] = policy
    for expert, policy in found.items():
        if expert not in spec.policies:
            raise UserError(
                f"policies.{policy}.algorithm.expert: is '{expert}', which is not in policies"
                f"{did_you_mean(expert, list(spec.policies))}"
            )
    return set(found)


def _needs(rule: AlgorithmSettings, kind: Kind) -> Needs | None:
    """What a rule needs; None where it refuses the agents, which is said later and better."""
    try:
        return rule.needs(kind)
    except UserError:
        return None


def _remedy(rule: AlgorithmSettings, kind: Kind) -> str:
    """What to do where one policy plays agents of several kinds."""
    needs = _needs(rule, kind)
    if needs is not None and needs.joint:
        return (
            f", and algorithm {rule.kind} learns from agents of equal ones together; pad their spaces until they are "
            "equal, or give each kind a policy in `agents`: a team of its own"
        )
    return "; give each its own policy in `agents`"


class _RoleList:
    """Roles with addresses and ranks in order of being added."""

    def __init__(self, serial: bool) -> None:
        self.roles: list[RolePlan] = []
        self.count: Counter[str] = Counter()
        """Roles of each name that have been added."""
        self._serial = serial
        self._ranks = 0

    def add(self, name: str, index: int, policy: str | None = None) -> RolePlan:
        """Adds a role on a rank of its own, unless the run is serial."""
        role = self._append(name, index, 0 if self._serial else self._ranks, policy)
        self._ranks += 1
        return role

    def _append(self, name: str, index: int, rank: int, policy: str | None) -> RolePlan:
        role = RolePlan(name, index, len(self.roles), rank, policy)
        self.roles.append(role)
        self.count[name] += 1
        return role

    def of(self, name: str, policy: str | None) -> list[RolePlan]:
        """The roles of a policy that have been added."""
        return [role for role in self.roles if (role.name, role.policy) == (name, policy)]

    def beside(self, other: RolePlan, name: str, index: int, policy: str | None = None) -> None:
        """Adds a role on the rank of another."""
        self._append(name, index, other.rank, policy)


def _roles(spec: ExperimentSpec, seats: tuple[Seat, ...], serial: bool) -> tuple[RolePlan, ...]:
    trained = [seat.policy for seat in seats if seat.trained]
    _check_roles(spec, seats, trained, serial)
    host = _SERVERS_BESIDE.get(spec.actors.inference.kind)
    roles = _RoleList(serial)
    for row in ROLES.values():
        if row.name == "policy_server" and (host is not None or not spec.actors.ranks):
            continue
        for policy in trained if row.per_policy else [None]:
            ranks = row.ranks(spec, policy)
            if ranks == 0 and row.beside is not None:
                for other in roles.of(row.beside, policy):
                    roles.beside(other, row.name, other.index, policy)
            for index in range(ranks or 0):
                role = roles.add(row.name, index, policy)
                if row.name == host and spec.actors.ranks:
                    roles.beside(role, "policy_server", roles.count["policy_server"], policy)
    return tuple(roles.roles)


def _check_roles(spec: ExperimentSpec, seats: tuple[Seat, ...], trained: list[str], serial: bool) -> None:
    if not trained:
        raise UserError("agents: no entry that plays has `train: true`, so nothing would be trained")
    if serial and spec.trainers.ranks > 1:
        raise UserError(f"trainers.ranks: is {spec.trainers.ranks}; a serial run has one trainer per policy")
    if spec.actors.inference.kind == "trainer" and len(trained) < len(seats):
        raise UserError("actors.inference.kind: is 'trainer'; every policy must be trained then")


def _check_acting(plan: Plan) -> None:
    """Whether somebody acts where something is learnt from it, and nobody where nothing is."""
    spec, trained = plan.spec, plan.trained_policies
    acting = [policy for policy in trained if spec.policies[policy].episodes is None]
    if acting and not spec.actors.ranks:
        raise UserError(
            f"actors.ranks: is 0, but policy {acting[0]} learns from what it does; raise it, or let the policy learn "
            "from recorded episodes (episodes, algorithm behaviour_cloning)"
        )
    if not acting and spec.actors.ranks:
        raise UserError(
            f"actors.ranks: is {spec.actors.ranks}, but all that is learnt from are files of episodes, so nothing of "
            "what they play would be used; set it to 0 (evaluators play all the same)"
        )


def _notes(plan: Plan) -> list[str]:
    notes, spec = [], plan.spec
    inference = spec.actors.inference.kind
    if inference != "server" and "policy_servers" in spec.model_fields_set:
        notes.append(
            f"policy_servers is not used: with actors.inference.kind {inference}, no rank serves actions alone"
        )
    if plan.serial and spec.checkpoint.every_updates is None:
        notes.append(
            f"serial runs count updates, not seconds: a checkpoint every {plan.serial_checkpoint_updates} updates; "
            "set checkpoint.every_updates to choose"
        )
    return notes


def _lag_notes(plan: Plan) -> Iterator[str]:
    """Which policies of several start fragments beyond their limit, lest groups wait in a circle."""
    limited = {
        policy: fragment(plan, policy).steps
        for policy in plan.trained_policies
        if max_policy_lag(plan, policy) is not None
    }
    for policy in must_not_wait(limited):
        yield (
            f"policies.{policy}: its fragments ({limited[policy]} steps) end within another policy's "
            f"({', '.join(f'{name} {steps}' for name, steps in limited.items() if name != policy)}), so some start "
            "beyond the limit of the policy lag, and those that become older than max_policy_lag are dropped"
            f"{'; with several trainers the run may pause for seconds' if plan.spec.trainers.ranks > 1 else ''}; "
            "choose batch.fragment_steps so that the longer is a multiple of the shorter"
        )


def _check_feedback(plan: Plan, policy: str) -> None:
    algorithm = plan.spec.policies[policy].algorithm
    if algorithm.needs(plan.kind_of(policy)).gives_feedback:
        raise UserError(
            f"policies.{policy}.algorithm: {algorithm.kind} gives feedback on the rows of a batch, such as priorities, "
            "but every batch is made of fresh blocks, which are not drawn by it; choose an algorithm that gives none"
        )


def _check_policy(plan: Plan, seat: Seat) -> None:
    """Whether network, learning rule and agents of a policy fit each other."""
    where, policy, kind = f"policies.{seat.policy}", plan.spec.policies[seat.policy], plan.spaces.kind(seat.kind)
    check_contract(where, policy, kind)
    check_expert(plan, seat.policy)
    check_exploration(where, policy.algorithm, columns(plan, seat.policy))
    try:
        policy.network.check(kind)
    except UserError as error:
        raise UserError(f"{where}.network: {error}") from None
    check_fields(where, policy.algorithm.kind, policy_shapes(plan, seat.policy))


def _check_batch(plan: Plan, policy: str) -> None:
    spec = plan.spec.policies[policy]
    brought, wanted = block_fragments(plan, policy), spec.batch.fragments
    if wanted % brought:
        raise UserError(
            f"policies.{policy}.batch.fragments: is {wanted}; one block brings {counted(brought, 'fragment')} "
            f"({counted(plan.spec.actors.environments, 'environment')} x {_columns_of_one(plan, policy)}), "
            f"and a batch is a whole number of blocks: use a multiple of {brought}, or change actors.environments"
        )
    groups, trainers = len(plan.groups), len(plan.trainers(policy))
    if groups < trainers:
        raise UserError(
            f"actors: {counted(groups, 'group')} (ranks x ring) cannot feed {trainers} trainers of policy {policy}; "
            "raise actors.ranks or actors.ring"
        )


def _columns_of_one(plan: Plan, policy: str) -> str:
    agents = counted(len(plan.seat(policy).trained), "trained agent")
    return f"1 column of {agents}" if policy_shapes(plan, policy).joint_agents else agents


def _check_message_sizes(plan: Plan, policy: str) -> None:
    replays = bool(plan.replays(policy))
    steps = "replay.block_steps" if replays else "batch.fragment_steps"
    messages = [
        ("block", block_layout(plan, policy), f"actors.environments or {steps}"),
        ("request", request_layout(plan, policy), "actors.environments"),
    ]
    if replays:
        messages.append(("part of a batch", windows_layout(plan, policy), "batch.fragments, or raise replay.ranks"))
    for name, layout, remedy in messages:
        if layout.size_bytes > _MAX_MESSAGE_BYTES:
            raise UserError(
                f"policies.{policy}: one {name} has {layout.size_bytes / 1e9:.1f} GB; at most 2 GiB fit in a message: "
                f"lower {remedy}"
            )
