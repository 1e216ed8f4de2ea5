"""What a plan says of its policy lag: the limit, what follows from it, and which setting makes data newer."""

from __future__ import annotations

from srlhpc.errors import counted
from srlhpc.plan.lag_limits import auto_policy_lag, lag_without_limit, max_policy_lag
from srlhpc.plan.plan import Plan
from srlhpc.plan.sizes import fragments_in_play


def lag_plan(plan: Plan, policy: str) -> str:
    """`policy lag: at most 1 update (max_policy_lag: auto)`, and what follows from it."""
    limit, setting = max_policy_lag(plan, policy), plan.spec.policies[policy].max_policy_lag
    if plan.serial:
        return f"policy lag: {counted(limit or 0, 'update')}, as in every serial run"
    written = "null" if setting is None else str(setting)
    said = "no limit" if limit is None else f"at most {counted(limit, 'update')}"
    return f"policy lag: {said} (max_policy_lag: {written}){_consequence(plan, policy, limit)}"


def _consequence(plan: Plan, policy: str, limit: int | None) -> str:
    in_play, auto = fragments_in_play(plan, policy), auto_policy_lag(plan, policy)
    fragments = f"{counted(in_play, 'fragment')} in play, batches of {plan.spec.policies[policy].batch.fragments}"
    if limit is None:
        if plan.spec.policies[policy].batch.queue is not None:
            return "; batches are kept and used again (batch.queue)"
        return f"; about {lag_without_limit(plan, policy)} where the trainer is slower than the actors"
    if auto is not None and limit < auto:
        return f"; actors wait during updates, which they would not at {auto} ({fragments})"
    return f"; {fragments}"


def lag_advice(plan: Plan, policy: str) -> str | None:
    """Which setting makes data newer; None where the limit was chosen, where batches are kept in a queue, with replay,
    and with files."""
    if plan.replays(policy) or not plan.sinks(policy):
        return None
    spec, auto = plan.spec.policies[policy], auto_policy_lag(plan, policy)
    if plan.serial or spec.batch.queue is not None or isinstance(spec.max_policy_lag, int):
        return None
    if spec.max_policy_lag is None:
        return f"policies.{policy}.max_policy_lag: auto" + (f" limits it to {auto}" if auto is not None else "")
    in_play = fragments_in_play(plan, policy)
    return (
        f"policies.{policy}.batch.fragments: {in_play} holds all fragments in play; a smaller "
        f"policies.{policy}.max_policy_lag makes actors wait"
    )
