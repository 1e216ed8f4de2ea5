"""The class for DeepMind Lab in docs/dm_env.md, on a stand-in for Lab, which has no wheels."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from envs.dm_env import Settings, build
from srlhpc.environment import ArraySpec, Discrete, Environment

pytest.importorskip("dm_env")

PAGE = Path(__file__).parents[2] / "docs/dm_env.md"
SHOWN = "RGB_INTERLEAVED"


class StandIn:
    """The interface of `deepmind_lab.Lab` as its manual has it: a level of 12 frames, in which going forward pays 1."""

    def __init__(self, level: str, observations: list[str], config: dict[str, str]) -> None:
        assert (level, observations) == ("rooms", [SHOWN])
        self._shape = (int(config["height"]), int(config["width"]), 3)
        self._left, self._shade = 0, 0

    def reset(self, episode: int = -1, seed: int | None = None) -> None:
        assert seed is not None
        self._left, self._shade = 12, seed % 256

    def is_running(self) -> bool:
        return self._left > 0

    def step(self, action: Any, num_steps: int = 1) -> float:
        assert self.is_running()
        assert action.dtype == np.intc
        assert action.shape == (7,)
        self._left -= num_steps
        self._shade = (self._shade + 1) % 256
        return float(action[3] * num_steps)

    def observations(self) -> dict[str, Any]:
        assert self.is_running()
        return {SHOWN: np.full(self._shape, self._shade, np.uint8)}

    def close(self) -> None:
        self._left = 0


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Two environments of the class that the page shows."""
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "deepmind_lab" in block]
    stand_in, module = ModuleType("deepmind_lab"), ModuleType("lab_of_the_page")
    stand_in.Lab = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(code, module.__dict__)
    return build(Settings(factory="dm_env", env=f"{module.__name__}:Lab", kwargs={"level": "rooms"}), 2, 0)


def test_class_of_the_page_plays_a_level_to_its_end(lab: Environment) -> None:
    assert lab.spaces.kind("agent").actions == Discrete(9)
    assert lab.spaces.kind("agent").observations == {"obs": ArraySpec((3, 72, 96), "uint8")}
    first = lab.reset(3).kinds["agent"].observations["obs"].copy()
    assert first[0].max() != first[1].max()
    for step in range(3):
        now = lab.step({"agent": np.array([[0], [1]])}).kinds["agent"]
        assert now.rewards.tolist() == [[4.0], [-4.0]]
        assert now.terminated.all() == (step == 2)
    assert not now.truncated.any()
