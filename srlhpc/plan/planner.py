"""Turns a spec into a plan, or says why it cannot work. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from srlhpc.comm.acquisition import must_not_wait
from srlhpc.environment import Spaces
from srlhpc.errors import UserError
from srlhpc.plan.evaluation_check import check_evaluators, evaluation_notes
from srlhpc.plan.exploration import exploration_notes
from srlhpc.plan.lag_limits import max_policy_lag
from srlhpc.plan.layouts import fragment
from srlhpc.plan.match_check import check_matches, match_notes
from srlhpc.plan.plan import Plan, RolePlan, Seat
from srlhpc.plan.plan_check import check_acting, check_batch, check_feedback, check_message_sizes, check_policy
from srlhpc.plan.replay_check import check_replay, replay_notes
from srlhpc.plan.roles import ROLES
from srlhpc.plan.seating import seats
from srlhpc.plan.turn_check import check_turns
from srlhpc.specs.experiment import ExperimentSpec

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
    seated = tuple(seats(spec, spaces))
    plan = Plan(spec, spaces, serial, _roles(spec, seated, serial), seated, ())
    for seat in seated:
        check_policy(plan, seat)
    check_acting(plan)
    check_matches(plan)
    check_evaluators(plan)
    notes = (
        *_notes(plan),
        *match_notes(plan),
        *evaluation_notes(plan),
        *replay_notes(plan),
        *_lag_notes(plan),
        *exploration_notes(plan),
    )
    plan = replace(plan, notes=notes)
    for policy in plan.fed_policies:
        if not plan.replays(policy):
            check_batch(plan, policy)
    for policy in plan.trained_policies:
        check_turns(plan, policy)
        if plan.replays(policy):
            check_replay(plan, policy)
        else:
            check_feedback(plan, policy)
    for seat in seated:
        check_message_sizes(plan, seat.policy)
    return plan


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
    trained = list(dict.fromkeys(seat.policy for seat in seats if seat.trained))
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
    if spec.actors.inference.kind == "trainer" and {*trained} < {seat.policy for seat in seats}:
        raise UserError("actors.inference.kind: is 'trainer'; every policy must be trained then")


def _notes(plan: Plan) -> list[str]:
    notes, spec = [], plan.spec
    inference = spec.actors.inference.kind
    if not spec.actors.ranks:
        unused = [f"actors.{key}" for key in spec.actors.model_fields_set - {"ranks"}]
        unused += ["policy_servers"] if "policy_servers" in spec.model_fields_set else []
        if unused:
            notes.append(f"{', '.join(sorted(unused))}: not used, since nobody acts (actors.ranks: 0)")
    elif inference != "server" and "policy_servers" in spec.model_fields_set:
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
        policy: fragment(plan, policy).steps for policy in plan.fed_policies if max_policy_lag(plan, policy) is not None
    }
    for policy in must_not_wait(limited, plan.sharded_policies):
        yield (
            f"policies.{policy}: its fragments ({limited[policy]} steps) end within another policy's "
            f"({', '.join(f'{name} {steps}' for name, steps in limited.items() if name != policy)}), so some start "
            "beyond the limit of the policy lag, and those that become older than max_policy_lag are dropped"
            f"{'; with several trainers the run may pause for seconds' if plan.spec.trainers.ranks > 1 else ''}; "
            "choose batch.fragment_steps so that the longer is a multiple of the shorter"
        )
