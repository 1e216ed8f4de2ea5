"""Algorithm `vdn`: agents that are learnt from together by the sum of their values (Sunehag et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.vdn.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActionValuePolicy

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: ActionValuePolicy, context: Context) -> Algorithm:
    """The learner of a policy that is on `context.device` already."""
    from srlhpc.algorithms.vdn.mixer import Sum
    from srlhpc.algorithms.vdn.update import mixed

    return mixed(settings, policy, Sum(), context)
