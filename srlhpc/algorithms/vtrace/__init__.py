"""Algorithm `vtrace`: actor-critic from data of older policies (Espeholt et al. 2018, arXiv:1802.01561), with APPO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.vtrace.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActorCriticPolicy

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: ActorCriticPolicy, context: Context) -> Algorithm:
    """The learner of a policy that is on `context.device` already."""
    from srlhpc.algorithms.vtrace.update import VTraceRule

    return VTraceRule(settings, policy, context)
