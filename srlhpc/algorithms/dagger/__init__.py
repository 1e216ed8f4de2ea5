"""Algorithm `dagger`: acts by itself and learns what an expert would have done there (Ross et al. 2011)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.dagger.settings import Settings
from srlhpc.specs.contracts import EXPERT_ACTION

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActorCriticPolicy

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: ActorCriticPolicy, context: Context) -> Algorithm:
    """The learner of a policy that is on `context.device` already."""
    from srlhpc.algorithms.imitation.update import Imitation

    return Imitation(settings, policy, lambda batch: batch.outputs[EXPERT_ACTION], context)
