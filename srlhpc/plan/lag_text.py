"""What is said of the policy lag: its limit in a plan, how old data was in a status, and which setting changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srlhpc.plan.plan import Plan


_HIGH = 2.0
"""Updates; data as old as this on average costs steps (benchmarks/policy_lag_*.md)."""


def lag_plan(plan: Plan, policy: str) -> str:
    """`policy lag: at most 1 update (max_policy_lag: auto)`, and what follows from it."""
    limit, setting = plan.max_policy_lag(policy), plan.spec.policies[policy].max_policy_lag
    if plan.serial:
        return f"policy lag: {_updates(limit or 0)}, as in every serial run"
    written = "null" if setting is None else str(setting)
    said = "no limit" if limit is None else f"at most {_updates(limit)}"
    return f"policy lag: {said} (max_policy_lag: {written}){_consequence(plan, policy, limit)}"


def _consequence(plan: Plan, policy: str, limit: int | None) -> str:
    in_play, auto = plan.fragments_in_play(policy), plan.auto_policy_lag(policy)
    fragments = f"{in_play} fragments in play, batches of {plan.spec.policies[policy].batch.fragments}"
    if limit is None:
        if plan.spec.policies[policy].batch.queue is not None:
            return "; batches are kept and used again (batch.queue)"
        return f"; about {plan.lag_without_limit(policy)} where the trainer is slower than the actors"
    if auto is not None and limit < auto:
        return f"; actors wait during updates, which they would not at {auto} ({fragments})"
    return f"; {fragments}"


def lag_advice(plan: Plan, policy: str) -> str | None:
    """Which setting makes data newer; None where the limit was chosen, and where batches are kept in a queue."""
    spec, auto = plan.spec.policies[policy], plan.auto_policy_lag(policy)
    if plan.serial or spec.batch.queue is not None or isinstance(spec.max_policy_lag, int):
        return None
    if spec.max_policy_lag is None:
        return f"policies.{policy}.max_policy_lag: auto" + (f" limits it to {auto}" if auto is not None else "")
    in_play = plan.fragments_in_play(policy)
    return (
        f"policies.{policy}.batch.fragments: {in_play} holds all fragments in play; a smaller "
        f"policies.{policy}.max_policy_lag makes actors wait"
    )


def lag_lines(state: Mapping[str, Any]) -> list[str]:
    """How old each policy's data was when it was trained last, with its limit, and what helps where it is old."""
    return [_lag_line(policy, lag) for policy, lag in (state.get("policy_lag") or {}).items()]


def lag_hints(state: Mapping[str, Any]) -> Iterator[str]:
    """What makes data newer, for the policies whose data is old."""
    for policy, lag in (state.get("policy_lag") or {}).items():
        if lag["mean"] >= _HIGH and lag["advice"]:
            yield (
                f"data of {policy} is {lag['mean']:.2g} updates old when it is trained, which costs steps: "
                f"{lag['advice']}"
            )


def _lag_line(policy: str, lag: Mapping[str, Any]) -> str:
    limit = "no limit" if lag["limit"] is None else f"at most {lag['limit']}"
    return f"{policy}: {lag['min']} to {lag['max']} updates, mean {lag['mean']:.2g} ({limit})"


def _updates(number: int) -> str:
    return "1 update" if number == 1 else f"{number} updates"
