"""Pictures and speed of simulators."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from envs._gymnasium_pictures import frames_per_second, picture
from envs.atari import Settings as AtariSettings
from envs.atari import build as build_atari
from tests.envs.counting_environments import Counting


class Simulator(Counting):
    def __init__(self, fps: Any = 20, drawn: Any = None) -> None:
        super().__init__(render_mode="rgb_array")
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": fps}
        self._drawn = drawn

    def render(self) -> Any:
        return self._drawn


@pytest.mark.parametrize(
    ("fps", "expected"),
    [(20, 20.0), (np.int64(20), 20.0), (np.float32(12.5), 12.5), (None, None), (0, None), ("fast", None)],
)
def test_speed_is_that_of_the_metadata_where_it_is_a_number(fps: Any, expected: float | None) -> None:
    assert frames_per_second(Simulator(fps)) == expected


def test_speed_counts_the_frames_that_wrappers_play_at_once() -> None:
    from gymnasium.wrappers import MaxAndSkipObservation, TimeLimit

    assert frames_per_second(TimeLimit(MaxAndSkipObservation(Simulator(20), skip=4), 9)) == 5.0


def test_speed_of_atari_counts_its_frame_skip() -> None:
    pytest.importorskip("ale_py")
    environment = build_atari(AtariSettings(factory="atari", game="pong"), 1, 0)
    assert environment.render_fps == 15.0
    environment.close()


def test_picture_of_a_vector_is_its_first_and_of_a_list_the_last() -> None:
    drawn = [np.zeros((2, 2, 3)), np.ones((2, 2, 3))]
    assert picture(Simulator(drawn=drawn), of_first=True) is drawn[0]
    assert picture(Simulator(drawn=drawn)) is drawn[1]
    assert picture(Simulator(drawn=[])) is None


def test_picture_keeps_what_was_drawn() -> None:
    drawn = np.full((2, 2, 3), 0.5)
    assert picture(gymnasium.Wrapper(Simulator(drawn=drawn))) is drawn
