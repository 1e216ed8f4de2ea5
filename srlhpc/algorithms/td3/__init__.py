"""Algorithm `td3`: twin delayed deep deterministic policy gradients (Fujimoto et al. 2018, arXiv:1802.09477)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.td3.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActorAndCritics
    from srlhpc.rl.deterministic import Deterministic

__all__ = ["Settings", "build"]


def build(settings: Settings, trained: ActorAndCritics[Deterministic], context: Context) -> Algorithm:
    """The learner of an actor and critics that are on `context.device` already."""
    from srlhpc.algorithms.td3.update import Td3

    return Td3(settings, trained, context)
