"""A pause in every step: training goes on, and leaves most of the cores to tests that run at the same time."""

from __future__ import annotations

import time
from typing import Any

import gymnasium

PAUSE_SECONDS = 0.0005


class SlowSteps(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Any environment, slower."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        time.sleep(PAUSE_SECONDS)
        return super().step(action)
