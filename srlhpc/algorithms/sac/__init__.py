"""Algorithm `sac`: soft actor-critic with twin critics (Haarnoja et al. 2018, arXiv:1812.05905)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.sac.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActorAndCritics
    from srlhpc.rl.squashed_gaussian import SquashedGaussian

__all__ = ["Settings", "build"]


def build(settings: Settings, trained: ActorAndCritics[SquashedGaussian], context: Context) -> Algorithm:
    """The learner of an actor and critics that are on `context.device` already."""
    from srlhpc.algorithms.sac.update import Sac

    return Sac(settings, trained, context)
