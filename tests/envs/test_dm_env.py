from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from envs._returned_values import SimulatorError
from envs.dm_env import Settings, build
from srlhpc.doctor.random_play import keep
from srlhpc.environment import ActionSpace, ArraySpec, Continuous, Discrete, Environment, MultiDiscrete
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

dm_env = pytest.importorskip("dm_env")

from dm_env import specs  # noqa: E402

from tests.envs.dm_environments import Told  # noqa: E402

HERE = "tests.envs.dm_environments"
ZERO = np.zeros(1, np.float32)
FIRST = dm_env.restart(ZERO)
LEFT_OR_RIGHT = specs.DiscreteArray(2)
SHOWN = specs.Array((1,), np.float32)


class TestWalk(EnvironmentConformance):
    settings = {"factory": "dm_env", "env": f"{HERE}:Walk"}


def make(num_environments: int = 1, **kwargs: Any) -> Environment:
    return build(Settings(factory="dm_env", env=f"{HERE}:Walk", kwargs=kwargs), num_environments, 0)


def told(
    *steps: Any,
    first: Any = FIRST,
    actions: Any = LEFT_OR_RIGHT,
    observations: Any = SHOWN,
    render: bool = False,
) -> Environment:
    """An environment that returns these time steps, after one for the look at its specs."""
    Told.steps, Told.actions, Told.observations = [first, *steps], actions, observations
    return build(Settings(factory="dm_env", env=f"{HERE}:Told", seed_argument=None), 1, 0, render)


def simulator_of(environment: Any) -> Any:
    return environment._simulators._simulators[0].environment


def played(*steps: Any) -> Any:
    environment = told(FIRST, *steps)
    environment.reset(0)
    for _ in steps:
        now = environment.step({"agent": np.zeros((1, 1), np.int64)}).kinds["agent"]
    return now


@pytest.mark.parametrize(
    ("discount", "terminated", "truncated"), [(0.0, True, False), (1.0, False, True), (0.9, False, True)]
)
def test_last_discount_says_how_an_episode_ended(discount: float, terminated: bool, truncated: bool) -> None:
    now = played(dm_env.transition(1.0, ZERO), dm_env.TimeStep(dm_env.StepType.LAST, 2.0, discount, ZERO + 3))
    assert (now.terminated.item(), now.truncated.item()) == (terminated, truncated)
    assert (now.rewards.item(), now.observations["obs"].item()) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (dm_env.transition(1.0, ZERO, discount=0.99), r"discount of a time step before the last is 0\.99.*gamma"),
        (dm_env.transition(1.0, ZERO, discount=0.0), r"discount of a time step before the last is 0\.0"),
        (dm_env.TimeStep(dm_env.StepType.LAST, 1.0, 1.5, ZERO), r"discount of a last time step is 1\.5"),
        (dm_env.TimeStep(dm_env.StepType.LAST, 1.0, np.nan, ZERO), "discount of a last time step is nan"),
        (dm_env.TimeStep(dm_env.StepType.LAST, 1.0, None, ZERO), "the discount is None"),
        (dm_env.TimeStep(dm_env.StepType.MID, None, 1.0, ZERO), "the reward is None"),
        (FIRST, "type FIRST, although no episode had ended"),
        (dm_env.transition(1.0, np.zeros(2, np.float32)), "the observation is of another shape"),
    ],
)
def test_time_step_that_cannot_be_learnt_from_is_refused(step: Any, complaint: str) -> None:
    with pytest.raises(SimulatorError, match=complaint):
        played(step)


@pytest.mark.parametrize(
    ("first", "complaint"),
    [
        (dm_env.transition(1.0, ZERO), "its reset returned a time step of type .*MID.*, expected FIRST"),
        (dm_env.restart(np.zeros(2, np.float32)), "reset: the observation is of another shape"),
    ],
)
def test_first_time_step_that_is_none_is_refused_before_the_start(first: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        told(first=first)


def test_parts_of_an_observation_become_keys() -> None:
    environment = make()
    assert environment.spaces.kinds[0].observations == {
        "body.is_left": ArraySpec((), "float32"),
        "body.place": ArraySpec((1,), "float32"),
        "eyes.0": ArraySpec((3, 8, 6), "uint8"),
        "eyes.1": ArraySpec((3,), "float32"),
    }
    environment.reset(0)
    seen = environment.step({"agent": np.zeros((1, 1), np.int64)}).kinds["agent"].observations
    assert (seen["body.is_left"].item(), seen["eyes.0"].max(), seen["eyes.1"].tolist()) == (1.0, 1, [[[0, 1, 0]]])


@pytest.mark.parametrize(
    ("spec", "ours", "action", "taken"),
    [
        (specs.DiscreteArray(3), Discrete(3), 2, np.int32(2)),
        (specs.BoundedArray((), np.int64, 1, 4), Discrete(4), 0, np.int64(1)),
        (specs.BoundedArray((2,), np.int8, [0, -1], [2, 1]), MultiDiscrete((3, 3)), [2, 0], np.array([2, -1], np.int8)),
        (specs.BoundedArray((2,), np.float64, -2, [2, 0]), Continuous(2), [0.5, 5], np.array([1.0, 0.0])),
        (specs.BoundedArray((1,), np.float64, -1e10, 1e10), Continuous(1), [7.5], np.array([7.5])),
        (specs.Array((1,), np.float32), Continuous(1), [-3], np.array([-3.0], np.float32)),
    ],
)
def test_action_spec_is_decoded(spec: Any, ours: ActionSpace, action: Any, taken: Any) -> None:
    environment = told(FIRST, dm_env.transition(0.0, ZERO), actions=spec)
    assert environment.spaces.kinds[0].actions == ours
    environment.reset(0)
    environment.step({"agent": np.array([[action]], ours.array.dtype)})
    last = simulator_of(environment).last
    spec.validate(last)
    assert (last.dtype, last.tolist()) == (taken.dtype, taken.tolist())


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        (
            {"actions": {"arm": LEFT_OR_RIGHT}},
            "action space dict is not understood.*change the environment",
        ),
        ({"observations": {"arm": "none"}}, "its observation_spec has 'none', which is not understood"),
        ({"observations": {"word": specs.StringArray(())}}, "has no numbers to learn from"),
    ],
)
def test_spec_that_is_not_understood_is_refused(chosen: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        told(**chosen)


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        ({"env": "no_such_package:Maze"}, "environment.env: there is no 'no_such_package:Maze'"),
        ({"env": f"{HERE}:Maze"}, "has no attribute 'Maze'.*as module:function"),
        ({"env": HERE}, "environment.env: there is no"),
        ({"env": f"{HERE}:Walk", "kwargs": {"sped": 1}}, "environment.kwargs of .*unexpected keyword argument 'sped'"),
        (
            {"env": f"{HERE}:Walk", "seed_argument": "random_state"},
            "argument: 'seed'; the seed is passed as 'random_state'",
        ),
        (
            {"env": f"{HERE}:Walk", "seed_argument": None},
            "environment.kwargs of .*missing a required argument: 'seed'; no seed is passed",
        ),
    ],
)
def test_environment_that_cannot_be_made_is_refused_in_words(chosen: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        build(Settings(factory="dm_env", **chosen), 1, 0)


def test_environments_of_an_earlier_seed_are_closed() -> None:
    environment = make(num_environments=2)
    environment.reset(1)
    first = simulator_of(environment)
    environment.reset(2)
    assert (first.closed, simulator_of(environment).closed) == (True, False)
    last = simulator_of(environment)
    environment.close()
    assert last.closed


def test_render_gives_a_picture_only_when_asked() -> None:
    drawing = build(Settings(factory="dm_env", env=f"{HERE}:Walk"), 1, 0, render=True)
    for environment in (quiet := make(), drawing):
        environment.reset(0)
        environment.step({"agent": np.zeros((1, 1), np.int64)})
    picture = drawing.render()
    assert quiet.render() is None
    assert picture is not None
    assert (picture.shape, picture.dtype, picture.max()) == ((4, 5, 3), np.uint8, 1)


def test_environment_that_draws_nothing_says_what_it_lacks() -> None:
    with pytest.raises(UserError, match="--video: Told has neither physics nor a method `render`"):
        told(render=True).render()


def test_last_observation_is_shown_before_the_next_episode() -> None:
    environment = make()
    environment.reset(0)
    seen = [keep(environment.step({"agent": np.ones((1, 1), np.int64)})).kinds["agent"] for _ in range(5)]
    assert [round(step.observations["body.place"].item() - 0.5) for step in seen] == [1, 2, 3, 4, 0]
    assert [step.terminated.item() for step in seen] == [False, False, False, True, False]
