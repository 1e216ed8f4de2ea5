"""Algorithm `behaviour_cloning`: learns to act as recorded episodes did (Pomerleau 1991)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.behaviour_cloning.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActorCriticPolicy

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: ActorCriticPolicy, context: Context) -> Algorithm:
    """The learner of a policy that is on `context.device` already."""
    from srlhpc.algorithms.imitation.update import Imitation

    return Imitation(settings, policy, lambda batch: batch.actions, context)
