"""How the rows of policy servers explore: from the plan, the rule and the trained steps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import FloatArray
from srlhpc.errors import UserError, counted
from srlhpc.plan.plan import Plan
from srlhpc.specs.named_modules import AlgorithmSettings

_LATE = 1_000_000_000
"""Trained steps at which exploration is told of where the run has no limit of steps."""


def group_columns(plan: Plan, policy: str) -> int:
    """Columns of a policy's seat in one group: its agents in all environments."""
    return plan.spec.actors.environments * len(plan.seat(policy).agents)


def columns(plan: Plan, policy: str) -> int:
    """Columns of a policy in the whole run."""
    return len(plan.groups) * len(plan.seats_of(policy)) * group_columns(plan, policy)


def acting_exploration(
    plan: Plan, policy: str, seats: Sequence[int]
) -> Callable[[int], Mapping[str, FloatArray]] | None:
    """A function of the trained steps that gives the numbers of each column of some seats, one after the other.

    None for a rule that says nothing of exploration. A policy that nobody trains acts as in evaluation.

    Args:
        plan: of the run.
        policy: one that acts.
        seats: numbers of its seats (`Plan.seat_number`).
    """
    rows = group_columns(plan, policy)
    numbers = (np.asarray(seats, np.int64)[:, None] * rows + np.arange(rows)).flatten()
    return _explored_by(plan, policy, numbers)


def even_exploration(plan: Plan, policy: str, rows: int) -> Callable[[int], Mapping[str, FloatArray]] | None:
    """What `acting_exploration` gives, for so many columns that are spread evenly over those of the whole run."""
    return _explored_by(plan, policy, np.arange(rows) * columns(plan, policy) // rows)


def _explored_by(
    plan: Plan, policy: str, numbers: NDArray[np.int64]
) -> Callable[[int], Mapping[str, FloatArray]] | None:
    rule, total = plan.spec.policies[policy].algorithm, columns(plan, policy)
    in_evaluation = rule.explore_in_evaluation()
    if not in_evaluation:
        return None
    if not plan.trainers(policy):
        frozen = {name: np.full(len(numbers), value, np.float32) for name, value in in_evaluation.items()}
        return lambda steps: frozen  # noqa: ARG005
    return lambda steps: rule.explore(numbers, total, steps)


def exploration_notes(plan: Plan) -> Iterator[str]:
    """How the policies explore, and where that changes with the number of actors."""
    for policy in plan.trained_policies:
        rule = plan.spec.policies[policy].algorithm
        if rule.explore_in_evaluation():
            said = _explored(rule, columns(plan, policy), plan.spec.stop.steps or _LATE)
            yield f"policies.{policy} explores: {said}"


def _explored(rule: AlgorithmSettings, total: int, end: int) -> str:
    """How a rule explores on so many columns, from the first step to the last."""
    numbers = np.arange(total, dtype=np.int64)

    def values(name: str, steps: int) -> FloatArray:
        return rule.explore(numbers, total, steps)[name]

    names = list(rule.explore_in_evaluation())
    parts = [_over_time(name, partial(values, name), end) for name in names]
    if any(np.ptp(values(name, 0)) for name in names):
        parts.append(
            f"by the number of each of {counted(total, 'column')} (agents of all environments), which another "
            "actors.ranks, ring or environments changes"
        )
    return "; ".join(parts)


def _over_time(name: str, values: Callable[[int], FloatArray], end: int) -> str:
    """`epsilon 1 at first, 0.05 at step 20,000` of numbers of all columns, which follow the trained steps one way."""
    first, last = values(0), values(end)
    if np.array_equal(first, last):
        return f"{name} {_range(first)}"
    until = _first(lambda step: not np.array_equal(values(step), first), end)
    done = _first(lambda step: np.array_equal(values(step), last), end)
    if until == done:
        return f"{name} {_range(first)} until step {done:,}, then {_range(last)}"
    return f"{name} {_range(first)} at first, {_range(last)} at step {done:,}"


def _first(holds: Callable[[int], bool], end: int) -> int:
    """The first step at which something holds that holds at `end`, not at 0, and stays so once it does."""
    before, step = 0, end
    while step - before > 1:
        middle = (before + step) // 2
        before, step = (before, middle) if holds(middle) else (middle, step)
    return step


def _range(values: FloatArray) -> str:
    least, most = float(values.min()), float(values.max())
    return f"{most:.3g}" if least == most else f"{most:.3g} to {least:.3g}"


def check_exploration(where: str, rule: AlgorithmSettings, total: int) -> None:
    """Refuses a rule whose functions of exploration do not fit each other.

    Args:
        where: name of the policy in the spec, for messages.
        rule: its learning rule.
        total: columns of the policy.

    Raises:
        UserError: names differ, or an array is not float32, one finite number for each column.
    """
    numbers = np.arange(min(total, 2), dtype=np.int64)
    explored, in_evaluation = rule.explore(numbers, total, 0), rule.explore_in_evaluation()
    if set(explored) != set(in_evaluation):
        raise UserError(
            f"{where}: algorithm {rule.kind} explores with {sorted(explored)} in training, but with "
            f"{sorted(in_evaluation)} in evaluation; `explore` and `explore_in_evaluation` must have the same names"
        )
    for name, array in explored.items():
        if array.dtype != np.float32 or array.shape != numbers.shape or not np.isfinite(array).all():
            raise UserError(
                f"{where}: algorithm {rule.kind} gives exploration '{name}' as {array.dtype} {list(array.shape)} "
                f"{array.tolist()} for {len(numbers)} columns; `explore` must give one finite float32 for each"
            )
