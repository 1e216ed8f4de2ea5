"""Keywords mean what they mean in `gymnasium.make`, whether environments are stepped by turns or by a native vector."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from envs._gymnasium_environment import GymnasiumEnvironment
from envs._gymnasium_simulators import Looped, Vectorised
from envs.gymnasium import Settings, build
from srlhpc.doctor.random_play import keep
from srlhpc.environment import ArraySpec, Environment
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

HERE = "tests.envs.counting_environments"
ODD = "tests.envs.odd_environments"
NATIVE, BY_TURNS = {"vectorization_mode": "vector_entry_point"}, {"vectorization_mode": "sync"}


class TestVectorOnly(EnvironmentConformance):
    settings = {"factory": "gymnasium", "id": f"{HERE}:NoisyOnly-v0"}


class Doubled(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A wrapper of a user's own: observations are scaled and shifted."""

    def __init__(self, env: Any, factor: float = 2.0, shift: float = 0.0) -> None:
        super().__init__(env)
        self.factor, self.shift = factor, shift

    def observation(self, observation: Any) -> Any:
        return observation * np.float32(self.factor) + np.float32(self.shift)


def make(name: str, num_environments: int = 2, wrappers: Any = (), **kwargs: Any) -> Environment:
    name = name if ":" in name else f"{HERE}:{name}"
    return build(Settings(factory="gymnasium", id=name, kwargs=kwargs, wrappers=wrappers), num_environments, 0)


def is_native(environment: Environment) -> bool:
    assert isinstance(environment, GymnasiumEnvironment)
    return isinstance(environment._simulators, Vectorised)


def wrappers_of(environment: Environment) -> list[str]:
    """Names of what is around the first environment, the outermost first."""
    assert isinstance(environment, GymnasiumEnvironment)
    assert isinstance(environment._simulators, Looped)
    simulator, names = environment._simulators._simulators[0], []
    while isinstance(simulator, gymnasium.Wrapper):
        names.append(type(simulator).__name__)
        simulator = simulator.env
    return names


def cut_after(environment: Environment, steps: int = 14) -> int | None:
    """The step at which the first episodes are truncated; None if that is later."""
    environment.reset(0)
    for step in range(1, steps + 1):
        now = environment.step({"agent": np.ones((environment.num_environments, 1), np.int64)}).kinds["agent"]
        assert not now.terminated.any()
        if now.truncated.any():
            assert now.truncated.all()
            assert now.observations["obs"][:, 0].tolist() == [[step, step]] * environment.num_environments
            return step
    return None


@pytest.mark.parametrize("mode", [NATIVE, BY_TURNS])
@pytest.mark.parametrize(("kwargs", "expected"), [({}, 10), ({"max_episode_steps": None}, 10)])
def test_registered_limit_of_steps_holds_where_none_is_given(mode: Any, kwargs: Any, expected: int) -> None:
    environment = make("Native-v0", **kwargs, **mode)
    assert is_native(environment) == (mode is NATIVE)
    assert cut_after(environment) == expected


@pytest.mark.parametrize("mode", [NATIVE, BY_TURNS])
def test_given_limit_of_steps_replaces_the_registered_one(mode: Any) -> None:
    assert cut_after(make("Native-v0", max_episode_steps=3, **mode)) == 3


def test_limit_of_minus_one_is_none_although_a_vector_could_not_do_that() -> None:
    assert cut_after(make("Native-v0", max_episode_steps=-1)) is None
    assert cut_after(make("gymnasium:CartPole-v1", max_episode_steps=-1), 2) is None
    with pytest.raises(UserError, match="no native vector here: max_episode_steps is -1"):
        make("Native-v0", max_episode_steps=-1, **NATIVE)


@pytest.mark.parametrize("value", [0, -2, 2.5, "10", True])
@pytest.mark.parametrize("name", ["Native-v0", "NativeOnly-v0"])
def test_limit_of_steps_that_is_none_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UserError, match=r"environment\.kwargs\.max_episode_steps: is .*; it must be a whole number"):
        make(name, max_episode_steps=value)


@pytest.mark.parametrize(
    ("kwargs", "is_checked"),
    [({}, False), ({"disable_env_checker": True}, False), ({"disable_env_checker": False}, True)],
)
def test_checker_of_environments_is_there_where_it_is_asked_for(kwargs: Any, is_checked: bool) -> None:
    assert ("PassiveEnvChecker" in wrappers_of(make(f"{ODD}:Picky-v0", **kwargs))) == is_checked
    assert is_native(make("Native-v0", **kwargs)) != is_checked


def test_checker_of_environments_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(UserError, match="disable_env_checker: is 'no'; it must be true, false"):
        make("Native-v0", disable_env_checker="no")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SameStep-v0", "its autoreset_mode is SameStep"),
        ("Disabled-v0", "its autoreset_mode is Disabled"),
        pytest.param("Silent-v0", "its autoreset_mode is None", marks=pytest.mark.filterwarnings("ignore:.*missing")),
        ("OtherSpace-v0", r"it observes Box\(0.0, 1.0, \(4,\)"),
        (f"{ODD}:Picky-v0", "the environment registers none"),
    ],
)
def test_vector_that_is_no_match_for_single_environments_is_not_used(name: str, reason: str) -> None:
    environment = make(name)
    assert not is_native(environment)
    with pytest.raises(UserError, match=f"vectorization_mode: no native vector here: {reason}"):
        make(name, **NATIVE)


def test_argument_that_only_single_environments_take_makes_them_step_by_turns() -> None:
    environment = make("Native-v0", render_mode="rgb_array")
    assert not is_native(environment)
    assert cut_after(environment) == 10


@pytest.mark.parametrize(
    ("name", "reason"), [("SameStepOnly-v0", "SameStep"), ("DisabledOnly-v0", "Disabled"), ("NativeOnly-v0", "sync")]
)
def test_environment_that_is_only_a_vector_is_refused_where_that_cannot_be_used(name: str, reason: str) -> None:
    kwargs = BY_TURNS if reason == "sync" else {}
    with pytest.raises(UserError, match=f"is registered as a vector only, which cannot be used: .*{reason}"):
        make(name, **kwargs)


def test_vector_of_pictures_is_read_environment_by_environment() -> None:
    environment = make("PictureOnly-v0", 3)
    assert environment.spaces.kinds[0].observations == {
        "image": ArraySpec((3, 6, 5), "uint8"),
        "step": ArraySpec((9,), "float32"),
    }
    environment.reset(0)
    now = environment.step({"agent": np.zeros((3, 1), np.int64)}).kinds["agent"].observations
    assert np.argwhere(now["image"]).tolist() == [[env, 0, 0, 1, 2] for env in range(3)]
    assert now["step"][:, 0].argmax(axis=1).tolist() == [1, 1, 1]


def test_record_after_an_end_is_empty_whatever_a_vector_says() -> None:
    environment = make("Native-v0", max_episode_steps=1, **NATIVE)
    environment.reset(0)
    steps = [keep(environment.step({"agent": np.ones((2, 1), np.int64)})).kinds["agent"] for _ in range(3)]
    assert [step.rewards.tolist() for step in steps] == [[[2.0]] * 2, [[0.0]] * 2, [[2.0]] * 2]
    assert [step.truncated.tolist() for step in steps] == [[[True]] * 2, [[False]] * 2, [[True]] * 2]


@pytest.mark.parametrize("mode", ["async", "Sync", 3])
def test_other_ways_of_stepping_environments_are_refused(mode: Any) -> None:
    with pytest.raises(UserError, match=r"vectorization_mode: is .*; it must be 'sync' .* take more actors\.ranks"):
        make("Native-v0", vectorization_mode=mode)


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("vector_kwargs", "write arguments of a native vector into environment.kwargs themselves"),
        ("wrappers", "it is a setting of its own, environment.wrappers"),
        ("additional_wrappers", "write them as environment.wrappers"),
        ("order_enforce", "it is an argument of gymnasium.register"),
        ("autoreset", "Gymnasium 1.0 removed it"),
        ("apply_api_compatibility", "Gymnasium 1.0 removed it"),
        ("id", "it is a setting of its own, environment.id"),
        ("rendermode", "did you mean 'render_mode'?"),
        ("depth", "known are: disable_env_checker, max_episode_steps, num_envs, render_mode"),
    ],
)
def test_word_that_is_no_argument_here_is_told_where_it_belongs(word: str, advice: str) -> None:
    with pytest.raises(UserError) as refused:
        build(Settings(factory="gymnasium", id=f"{HERE}:Native-v0", kwargs={word: 1}), 1, 0)
    assert word in str(refused.value)
    assert advice in str(refused.value)


def test_environments_in_kwargs_are_told_from_an_argument_of_the_environment() -> None:
    environment = make("Native-v0", num_envs=7, **BY_TURNS)
    assert environment._simulators._simulators[0].unwrapped.own_number == 7  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=r"'num_envs'; actors\.environments says how many environments"):
        make("gymnasium:Acrobot-v1", num_envs=7)


def test_missing_argument_of_an_environment_is_named() -> None:
    with pytest.raises(UserError, match=r"environment\.kwargs of '.*Demanding-v0': .*missing 1 required .*'size'"):
        make(f"{ODD}:Demanding-v0")


def test_type_error_inside_an_environment_is_not_blamed_on_its_arguments() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        make(f"{ODD}:Demanding-v0", size=None)


def test_class_that_is_no_gymnasium_environment_is_refused() -> None:
    with pytest.raises(UserError, match="environment '.*Foreign-v0': .*must inherit from the gymnasium.Env class"):
        make(f"{ODD}:Foreign-v0")


def test_wrappers_go_around_each_environment_from_the_inside_out() -> None:
    own = f"{__name__}:Doubled"
    environment = make("Native-v0", wrappers=[own, {own: {"factor": 3.0, "shift": 1.0}}])
    assert not is_native(environment)
    environment.reset(0)
    now = environment.step({"agent": np.ones((2, 1), np.int64)}).kinds["agent"]
    assert now.observations["obs"][:, 0].tolist() == [[7.0, 7.0]] * 2


def test_wrappers_make_an_observation_fit() -> None:
    space = spaces.Dict({"speed": spaces.Box(-1, 1, (3,)), "cards": spaces.Sequence(spaces.Discrete(2))})
    chosen = {"gymnasium.wrappers.FilterObservation": {"filter_keys": ["speed"]}}
    wrappers = [chosen, "gymnasium.wrappers.FlattenObservation"]
    environment = make(f"{ODD}:Picky-v0", observation_space=space, wrappers=wrappers)
    assert environment.spaces.kinds[0].observations == {"obs": ArraySpec((3,), "float32")}


@pytest.mark.parametrize(
    ("wrapper", "complaint"),
    [
        ("gymnasium.wrappers.FlatenObservation", "there is no 'gymnasium.wrappers.FlatenObservation'"),
        ("FlattenObservation", "there is no 'FlattenObservation'.* write the import path of a wrapper"),
        ("no_such_lab:Wrapper", "there is no 'no_such_lab:Wrapper'"),
        ("gymnasium.wrappers.TimeLimit", "does not fit here: TypeError: .*max_episode_steps"),
        ("gymnasium.wrappers.GrayscaleObservation", "does not fit here: "),
    ],
)
def test_wrapper_that_there_is_not_or_that_does_not_fit_is_named(wrapper: str, complaint: str) -> None:
    with pytest.raises(UserError, match=rf"environment\.wrappers\.1: .*{complaint}"):
        make("Native-v0", wrappers=[f"{__name__}:Doubled", wrapper])


def test_two_wrappers_in_one_entry_are_refused() -> None:
    with pytest.raises(UserError, match=r"environment\.wrappers\.0: names 2 wrappers; write each as an entry"):
        make("Native-v0", wrappers=[{"a.B": {}, "c.D": {}}])
