"""Algorithm `qmix`: agents are learnt from together by a monotonic mixture of values (Rashid et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.qmix.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActionValuePolicy

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: ActionValuePolicy, context: Context) -> Algorithm:
    """The learner of a policy that is on `context.device` already."""
    from srlhpc.algorithms.qmix.mixer import Monotonic
    from srlhpc.algorithms.vdn.team import state_size
    from srlhpc.algorithms.vdn.update import mixed

    mixer = Monotonic(settings.mixer, context.joint_agents, state_size(policy.kind, context.joint_agents))
    return mixed(settings, policy, mixer.to(context.device), context)
