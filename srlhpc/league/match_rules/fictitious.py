"""Fictitious self-play: every version of the past is met equally often (Heinrich, Lanctot and Silver 2015)."""

from __future__ import annotations

import numpy as np

from srlhpc.league.payoffs import FloatArray
from srlhpc.specs.named_modules import WinRateRuleSettings


class Settings(WinRateRuleSettings):
    """There is nothing to choose."""

    kind: str = "fictitious"


def chances(settings: Settings, win_rates: FloatArray) -> FloatArray:  # noqa: ARG001
    """One in N for each of N versions."""
    return np.full(len(win_rates), 1.0 / len(win_rates))
