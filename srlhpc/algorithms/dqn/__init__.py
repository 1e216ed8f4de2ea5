"""Algorithm `dqn`: deep Q-learning from replay (Mnih et al. 2015, Nature 518), with what has been added to it since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.dqn.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActionValuePolicy

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: ActionValuePolicy, context: Context) -> Algorithm:
    """The learner of a policy that is on `context.device` already."""
    from srlhpc.algorithms.dqn.update import dqn

    return dqn(settings, policy, context)
