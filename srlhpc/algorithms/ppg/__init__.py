"""Algorithm `ppg`: phasic policy gradient (Cobbe et al. 2020, arXiv:2009.04416)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.ppg.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.phasic import PhasicActorCritic

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: PhasicActorCritic, context: Context) -> Algorithm:
    """The learner of a policy, and the value beside it, that are on `context.device` already."""
    from srlhpc.algorithms.ppg.update import Ppg

    return Ppg(settings, policy, context)
