"""What rules that train an actor and critics from replay ask of a job alike; nothing of it loads torch."""

from __future__ import annotations

from srlhpc.environment import Continuous, Kind
from srlhpc.errors import UserError
from srlhpc.specs.actor_heads import ActorHead
from srlhpc.specs.contracts import ACTOR_AND_CRITICS, Needs
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.spec import refusal

ELSEWHERE = {
    **dict.fromkeys(("lr", "learning_rate"), "actor_learning_rate and critic_learning_rate"),
    "tau": "polyak",
    "batch_size": "batch.fragments of the policy",
    "buffer_size": "replay.capacity of the policy",
}
"""Keys that other libraries have in such rules, and what they are here."""


def replayed_needs(rule: str, kind: Kind, head: ActorHead) -> Needs:
    """What such a rule needs; raises UserError where actions are not continuous.

    Args:
        rule: its name, for messages.
        kind: the agents.
        head: what the actor looks like.
    """
    if not isinstance(kind.actions, Continuous):
        raise UserError(
            f"algorithm {rule} trains continuous actions, but agents of kind '{kind.name}' take "
            f"{kind.actions.kind.replace('_', '-')} ones; set algorithm.kind to dqn (discrete) or ppo (any)"
        )
    # A batch of 256 every step (Haarnoja et al. 2018, table 1).
    return Needs(ACTOR_AND_CRITICS, head=head, gives_feedback=True, data="replay", samples_per_insert=256.0)


def refuse_memory(rule: str, network: NetworkSettings) -> None:
    """Raises a refusal of a network with memory."""
    if network.recurrent is not None:
        raise refusal(
            f"is set, but {rule} trains networks without memory; set it to null (stacked observations show what "
            "happened before), or algorithm.kind to ppo",
            *("network", "recurrent"),
        )
