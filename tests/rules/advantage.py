"""Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783) with a critic that does not act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import PositiveFloat

from srlhpc.environment import Kind
from srlhpc.specs.contracts import Needs
from srlhpc.specs.named_modules import AlgorithmSettings
from tests.rules.critic_beside import CRITIC_BESIDE

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Context
    from tests.rules.critic_beside_modules import ActorBesideCritic


class Settings(AlgorithmSettings):
    learning_rate: PositiveFloat = 1e-2
    gamma: PositiveFloat = 0.99

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(CRITIC_BESIDE)


def build(settings: Settings, trained: ActorBesideCritic, context: Context) -> Algorithm:
    from tests.rules.advantage_update import Advantage

    return Advantage(settings, trained, context)
