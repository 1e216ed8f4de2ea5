"""Prioritised fictitious self-play: versions are met more often the more is to be learnt from them (AlphaStar)."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveFloat

from srlhpc.league.payoffs import FloatArray
from srlhpc.league.prioritized import hard, variance
from srlhpc.specs.named_modules import WinRateRuleSettings


class Settings(WinRateRuleSettings):
    """What makes an opponent worth meeting."""

    kind: str = "prioritized"
    weighting: Literal["hard", "variance"] = "hard"
    """hard: those that the learner does not beat, (1 - x)^power. variance: those of its own strength, x (1 - x)."""
    power: PositiveFloat = 2.0
    """How much more often the hard ones are met; not used by variance."""


def chances(settings: Settings, win_rates: FloatArray) -> FloatArray:
    """How often each of N versions shall be met, by how often it is beaten (`srlhpc.league.prioritized`)."""
    return variance(win_rates) if settings.weighting == "variance" else hard(win_rates, power=settings.power)
