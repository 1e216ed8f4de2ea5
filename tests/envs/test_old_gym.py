"""Environments with old Gym's interface are told what Gymnasium's is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from envs._returned_values import SimulatorError
from envs.gymnasium import Settings, build
from srlhpc.environment import Environment
from srlhpc.errors import UserError

ODD = "tests.envs.odd_environments"


def make(name: str, **kwargs: Any) -> Environment:
    return build(Settings(factory="gymnasium", id=f"{ODD}:{name}", kwargs=kwargs), 1, 0)


@pytest.mark.parametrize("kwargs", [{}, {"max_episode_steps": 5}])
def test_step_of_four_values_is_named_also_within_wrappers(kwargs: Any) -> None:
    environment = make("OldStep-v0", **kwargs)
    environment.reset(0)
    with pytest.raises(SimulatorError, match="step returned four values .*; Gymnasium's returns observation, rew"):
        environment.step({"agent": np.zeros((1, 1), np.int64)})


def test_own_mistake_of_an_environment_is_left_as_it_is() -> None:
    environment = make("Mistaken-v0")
    environment.reset(0)
    with pytest.raises(ValueError, match="not enough values to unpack") as raised:
        environment.step({"agent": np.zeros((1, 1), np.int64)})
    assert not isinstance(raised.value, SimulatorError)


def test_reset_that_returns_the_observation_alone_is_refused_although_it_can_be_unpacked() -> None:
    with pytest.raises(UserError, match="its reset does not return an observation and a mapping"):
        make("OldReset-v0")


def test_reset_without_a_seed_is_refused() -> None:
    with pytest.raises(UserError, match="its reset takes no seed, as old Gym's"):
        make("Unseeded-v0")
