"""Whether a policy can learn from agents that take turns. Pure."""

from __future__ import annotations

from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan


def check_turns(plan: Plan, policy: str) -> None:
    """Refuses rules and batches that need all agents to act at every step, where they take turns.

    Args:
        plan: of the run.
        policy: that is trained.

    Raises:
        UserError: with the remedy.
    """
    kind, spec = plan.kind_of(policy), plan.spec.policies[policy]
    if not kind.takes_turns:
        return
    if spec.algorithm.needs(kind).joint:
        raise UserError(
            f"policies.{policy}.algorithm: {spec.algorithm.kind} learns from what all agents of a team do at once, but "
            f"agents of kind '{kind.name}' take turns; set algorithm.kind to ppo, vtrace or dqn"
        )
    if spec.replay is None and spec.episodes is None and spec.batch.fragment_steps < kind.turn_steps:
        raise UserError(
            f"policies.{policy}.batch.fragment_steps: is {spec.batch.fragment_steps}, but from one turn of an agent of "
            f"kind '{kind.name}' to its next there may be {kind.turn_steps} steps, so hardly any turn would have a "
            f"known outcome; set it to {kind.turn_steps} or more, better to ten times as many"
        )
    if spec.replay is None and spec.batch.chunks > 1:
        raise UserError(
            f"policies.{policy}.batch.chunk_steps: is {spec.batch.chunk_steps}, but agents of kind '{kind.name}' take "
            "turns, so a chunk holds more turns or fewer; leave chunk_steps out, or choose shorter fragments"
        )
