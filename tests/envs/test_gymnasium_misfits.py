"""What is advised where the spaces of a Gymnasium environment do not fit, or are not there."""

from __future__ import annotations

import inspect
import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from envs.gymnasium import Settings, build
from srlhpc.environment import ArraySpec, Environment
from srlhpc.errors import UserError


def picky(space: Any, wrappers: Any = ()) -> Environment:
    name, kwargs = "tests.envs.odd_environments:Picky-v0", {"observation_space": space}
    return build(Settings(factory="gymnasium", id=name, kwargs=kwargs, wrappers=wrappers), 1, 0)


class Counted(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A wrapper of a user's own: numbers for what cannot be flattened."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0, np.inf, (1,))

    def observation(self, observation: Any) -> Any:
        return np.array([len(str(observation))], np.float32)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"speed": spaces.Box(-1, 1, (3,)), "cards": spaces.Sequence(spaces.Discrete(2))}),
        spaces.Graph(spaces.Box(-1, 1, (2,)), spaces.Discrete(2)),
        spaces.Sequence(spaces.Box(-1, 1, (2,)), stack=True),
    ],
)
def test_wrapper_of_ones_own_is_advised_where_nothing_else_makes_an_observation_fit(space: Any) -> None:
    with pytest.raises(UserError, match=r"by a gymnasium\.ObservationWrapper of yours, .* \['my_lab") as refused:
        picky(space)
    assert "FlattenObservation" not in str(refused.value)
    environment = picky(space, [f"{__name__}:Counted"])
    assert environment.spaces.kinds[0].observations == {"obs": ArraySpec((1,), "float32")}


def test_flattening_is_advised_where_it_makes_an_observation_fit() -> None:
    space = spaces.OneOf([spaces.Discrete(2), spaces.Box(-1, 1, (2,))])
    with pytest.raises(UserError, match=r"OneOf is not.*wrappers: \[gymnasium\.wrappers\.FlattenObservation\]"):
        picky(space)
    environment = picky(space, ["gymnasium.wrappers.FlattenObservation"])
    assert environment.spaces.kinds[0].observations == {"obs": ArraySpec((3,), "float32")}


class Bare(gymnasium.Env[Any, Any]):
    """Has no spaces."""


class OneSpace(Bare):
    """Has one."""

    observation_space = spaces.Box(-1, 1, (1,))


class Failing(Bare):
    """Has a mistake of its own."""

    @property
    def observation_space(self) -> Any:  # type: ignore[override]
        return self.no_such_attribute  # type: ignore[attr-defined]


for lacking in (Bare, OneSpace, Failing):
    gymnasium.register(f"{lacking.__name__}-v0", lacking)


@pytest.mark.parametrize(("of", "lacking"), [(Bare, "observation_space"), (OneSpace, "action_space")])
def test_missing_space_is_told_with_the_class_of_the_user(of: type, lacking: str) -> None:
    place = rf"{of.__name__} \({re.escape(__file__)}:{inspect.getsourcelines(of)[1]}\)"
    with pytest.raises(
        UserError, match=rf"environment '.*{of.__name__}-v0': {place} sets no {lacking}; set it in __init__"
    ):
        build(Settings(factory="gymnasium", id=f"{__name__}:{of.__name__}-v0"), 1, 0)


def test_attribute_error_inside_a_space_is_not_taken_for_a_missing_space() -> None:
    with pytest.raises(AttributeError, match="no_such_attribute"):
        build(Settings(factory="gymnasium", id=f"{__name__}:Failing-v0"), 1, 0)
