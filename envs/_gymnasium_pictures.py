"""What simulators draw, and how fast they play."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from srlhpc.environment import Array


def picture(simulator: Any, *, of_first: bool = False) -> Array | None:
    """What the simulator draws, whatever it is; None without render mode.

    Args:
        simulator: one environment, or a vector of them.
        of_first: take the first of a vector's pictures. Otherwise a list is of those since the last call, of which the
            last is now.
    """
    if getattr(simulator, "render_mode", None) is None:
        return None
    drawn: Any = simulator.render()
    if isinstance(drawn, list | tuple):
        drawn = drawn[0 if of_first else -1] if drawn else None
    found: Array | None = drawn
    return found


def takes_no_render_mode(where: str) -> str:
    """What is said of a simulator that cannot be told to draw."""
    return (
        f"--video: {where} takes no render_mode, so it draws no pictures; let it take one, keep it as "
        "self.render_mode, and give bytes (uint8) [height, width, 3] in `render` where it is 'rgb_array'"
    )


def frames_per_second(simulator: Any) -> float | None:
    """Steps of one second of play, if the simulator (or a vector of them) says so.

    `render_fps` counts the steps of the innermost simulator, of which some wrappers play several at once.
    """
    fps = (getattr(simulator, "metadata", None) or {}).get("render_fps")
    if not isinstance(fps, Real) or not 0 < float(fps) < math.inf:
        return None
    return float(fps) / _steps_at_once(simulator)


def _steps_at_once(simulator: Any) -> int:
    import gymnasium
    from gymnasium.wrappers import AtariPreprocessing, MaxAndSkipObservation

    steps = 1
    while isinstance(simulator, gymnasium.Wrapper):
        if isinstance(simulator, MaxAndSkipObservation):
            steps *= int(simulator._skip)
        elif isinstance(simulator, AtariPreprocessing):
            steps *= int(simulator.frame_skip)
        simulator = simulator.env
    return steps
