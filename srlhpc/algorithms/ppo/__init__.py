"""Algorithm `ppo`: proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.algorithms.ppo.settings import Settings

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from srlhpc.policies.contracts import ActorCriticPolicy

__all__ = ["Settings", "build"]


def build(settings: Settings, policy: ActorCriticPolicy, context: Context) -> Algorithm:
    """The learner of a policy that is on `context.device` already."""
    from srlhpc.algorithms.ppo.update import Ppo

    return Ppo(settings, policy, context)
