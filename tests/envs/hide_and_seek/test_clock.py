from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.clock import Clock
from envs.hide_and_seek.settings import Settings


def at(time: int, horizon: int = 240, fraction: float = 0.4) -> Clock:
    clock = Clock(1, horizon, fraction)
    clock.time[:] = time
    return clock


@pytest.mark.parametrize(("horizon", "last"), [(240, 96), (80, 32), (360, 144), (480, 192)])
def test_preparation_takes_two_fifths_of_an_episode(horizon: int, last: int) -> None:
    assert at(last - 1, horizon).is_preparing[0]
    assert not at(last, horizon).is_preparing[0]


def test_observed_preparation_is_one_only_a_step_after_its_end() -> None:
    assert at(0).prep_observed[0] == 0.0
    assert at(48).prep_observed[0] == pytest.approx(0.5)
    assert 0.9999 < at(96).prep_observed[0] < 1.0
    assert np.float32(at(96).prep_observed[0]) < 1.0
    assert at(97).prep_observed[0] == 1.0


def test_preparation_is_reported_once_when_observed_as_one() -> None:
    assert [time for time in range(241) if at(time).is_prep_reported[0]] == [97]
    assert [time for time in range(81) if at(time, 80).is_prep_reported[0]] == [33]
    assert [time for time in range(81) if at(time, 80, 0.0).is_prep_reported[0]] == [1]


def test_an_episode_is_over_after_its_steps() -> None:
    assert not at(239).is_over[0]
    assert at(240).is_over[0]


@pytest.mark.parametrize(
    ("scale", "scales", "horizon"), [(1.0, True, 240), (1.5, True, 360), (2.0, True, 480), (2.0, False, 240)]
)
def test_larger_maps_have_longer_episodes_unless_fixed(scale: float, scales: bool, horizon: int) -> None:
    settings = Settings(factory="hide_and_seek", map_scale=scale, horizon_scales=scales)
    assert settings.horizon == horizon
