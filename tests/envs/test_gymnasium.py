from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from envs._gymnasium_spaces import _say_what_is_left_out
from envs.gymnasium import Settings, build
from srlhpc.doctor.random_play import keep, random_actions
from srlhpc.environment import ActionSpace, ArraySpec, Continuous, Discrete, Environment, MultiDiscrete
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

ODD = "tests.envs.odd_environments"


class TestCartPole(EnvironmentConformance):
    settings = {"factory": "gymnasium", "id": "CartPole-v1"}


class TestFrozenLake(EnvironmentConformance):
    settings = {"factory": "gymnasium", "id": "FrozenLake-v1"}


class TestTruncatedPendulum(EnvironmentConformance):
    settings = {"factory": "gymnasium", "id": "Pendulum-v1", "kwargs": {"max_episode_steps": 20}}


class TestMasked(EnvironmentConformance):
    settings = {"factory": "gymnasium", "id": f"{ODD}:Masked-v0"}


def make(name: str, num_environments: int = 1, **kwargs: Any) -> Environment:
    return build(Settings(factory="gymnasium", id=name, kwargs=kwargs), num_environments, 0)


def picky(**kwargs: Any) -> Environment:
    return make(f"{ODD}:Picky-v0", **kwargs)


def simulator_of(environment: Environment) -> Any:
    """The first, without its wrappers, of an environment that steps its environments one after the other."""
    return environment._simulators._simulators[0].unwrapped  # type: ignore[attr-defined]


def test_vectorised_cartpole_gives_what_gymnasium_gives() -> None:
    environment, twin = (
        make("CartPole-v1", 4),
        gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="vector_entry_point"),
    )
    random = np.random.default_rng(0)
    step, (observations, _) = environment.reset(5), twin.reset(seed=5)
    for _ in range(100):
        np.testing.assert_array_equal(step.kinds["agent"].observations["obs"][:, 0], observations)
        actions = random.integers(2, size=(4, 1))
        step = environment.step({"agent": actions})
        observations, rewards, terminated, _, _ = twin.step(actions[:, 0])
        np.testing.assert_array_equal(step.kinds["agent"].rewards[:, 0], rewards)
        np.testing.assert_array_equal(step.kinds["agent"].terminated[:, 0], terminated)


def test_observation_after_the_end_is_the_one_that_ended_the_episode() -> None:
    environment = make("CartPole-v1", 4)
    now, random, ends = environment.reset(5).kinds["agent"], np.random.default_rng(0), 0
    for _ in range(100):
        now = environment.step({"agent": random.integers(2, size=(4, 1))}).kinds["agent"]
        x, _, angle, _ = np.abs(now.observations["obs"][:, 0]).T
        np.testing.assert_array_equal((x > 2.4) | (angle > 12 * np.pi / 180), now.terminated[:, 0])
        ends += int(now.terminated.sum())
    assert ends


def test_stepped_environments_give_what_a_single_simulator_gives_until_its_last_observation() -> None:
    environment, twin = (
        make("MountainCar-v0", 2, max_episode_steps=10),
        gymnasium.make("MountainCar-v0", max_episode_steps=10),
    )
    seed = int(np.random.SeedSequence(5).generate_state(2)[1])
    expected = [twin.reset(seed=seed)[0], *(twin.step(2)[0] for _ in range(10)), twin.reset()[0]]
    push = {"agent": np.full((2, 1), 2)}
    steps = [keep(environment.reset(5)), *(keep(environment.step(push)) for _ in range(11))]
    seen = [step.kinds["agent"].observations["obs"][1, 0] for step in steps]
    np.testing.assert_array_equal(seen, expected)
    assert [bool(step.kinds["agent"].truncated[1, 0]) for step in steps] == [False] * 10 + [True, False]


def test_vectorised_simulator_gets_its_arguments() -> None:
    environment = make("CartPole-v1", 2, max_episode_steps=5, sutton_barto_reward=True)
    environment.reset(0)
    steps = [keep(environment.step({"agent": np.full((2, 1), t % 2)})) for t in range(5)]
    assert steps[-1].kinds["agent"].truncated.tolist() == [[True], [True]]
    assert [(episode.steps, episode.returns["agent"]) for episode in steps[-1].episodes] == [(5, 0.0), (5, 0.0)]


def test_termination_counts_where_both_ends_are_reported() -> None:
    environment = make(f"{ODD}:Masked-v0", 8)
    step, random = keep(environment.reset(0)), np.random.default_rng(0)
    lengths: dict[str, set[int]] = {"terminated": set(), "truncated": set()}
    for _ in range(200):
        step = keep(environment.step(random_actions(environment.spaces, step, random)))
        for episode in step.episodes:
            now = step.kinds["agent"]
            lengths["terminated" if now.terminated[episode.environment, 0] else "truncated"].add(episode.steps)
    assert lengths["truncated"] == {6}
    assert lengths["terminated"] == {1, 2, 3, 4, 5, 6}


def test_dict_observations_become_keys() -> None:
    environment = make(f"{ODD}:Masked-v0")
    (kind,) = environment.spaces.kinds
    assert kind.observations == {
        "image": ArraySpec((3, 8, 6), "uint8"),
        "position": ArraySpec((2,), "float32"),
        "room": ArraySpec((3,), "float32"),
    }
    now = environment.reset(0).kinds["agent"]
    assert now.observations["image"][0, 0, 1, 0, 2] == 200
    assert now.observations["image"].flags.c_contiguous
    assert now.action_masks is not None
    np.testing.assert_array_equal(now.observations["room"] == 0, now.action_masks)


@pytest.mark.parametrize(
    ("space", "spec", "encode"),
    [
        (spaces.Box(-1, 1, (2, 3), np.float64), ArraySpec((2, 3), "float32"), lambda raw: raw.astype(np.float32)),
        (spaces.Box(0, 9, (4,), np.int32), ArraySpec((4,), "float32"), lambda raw: raw.astype(np.float32)),
        (spaces.Box(0, 255, (9,), np.uint8), ArraySpec((9,), "uint8"), lambda raw: raw),
        (spaces.Box(0, 1, (9,), np.uint8), ArraySpec((9,), "float32"), lambda raw: raw.astype(np.float32)),
        (spaces.Box(0, 255, (6, 5, 3), np.uint8), ArraySpec((3, 6, 5), "uint8"), lambda raw: raw.transpose(2, 0, 1)),
        (spaces.Box(0, 255, (4, 6, 5), np.uint8), ArraySpec((4, 6, 5), "uint8"), lambda raw: raw),
        (spaces.Box(0, 255, (6, 5), np.uint8), ArraySpec((1, 6, 5), "uint8"), lambda raw: raw[None]),
        (spaces.Discrete(4, start=3), ArraySpec((4,), "float32"), lambda raw: np.eye(4)[raw - 3]),
        (spaces.MultiBinary(3), ArraySpec((3,), "float32"), lambda raw: raw),
        (
            spaces.MultiDiscrete([2, 3], start=[0, 1]),
            ArraySpec((5,), "float32"),
            lambda raw: np.concatenate([np.eye(2)[raw[0]], np.eye(3)[raw[1] - 1]]),
        ),
    ],
)
def test_observation_space_becomes_an_array(space: Any, spec: ArraySpec, encode: Any) -> None:
    environment = picky(observation_space=space)
    simulator = simulator_of(environment)
    seen = environment.reset(0).kinds["agent"].observations["obs"][0, 0]
    assert environment.spaces.kinds[0].observations == {"obs": spec}
    np.testing.assert_array_equal(seen, encode(simulator.shown))


class Mission(spaces.Space[str]):
    """Text in a space of an environment's own, as MiniGrid has it."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "get the blue key"

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


def test_spaces_within_each_other_become_keys_with_the_way_to_them_as_their_names() -> None:
    arm = spaces.Dict({"angle": spaces.Box(-1, 1, (2,)), "on": spaces.MultiBinary(3)})
    view = spaces.Tuple([spaces.Box(0, 255, (9, 8, 3), np.uint8), spaces.MultiDiscrete([2, 3])])
    environment = picky(observation_space=spaces.Tuple([spaces.Dict({"arm": arm, "view": view}), spaces.Discrete(4)]))
    spec = ArraySpec
    assert environment.spaces.kinds[0].observations == {
        "0.arm.angle": spec((2,), "float32"),
        "0.arm.on": spec((3,), "float32"),
        "0.view.0": spec((3, 9, 8), "uint8"),
        "0.view.1": spec((5,), "float32"),
        "1": spec((4,), "float32"),
    }
    now = environment.reset(0).kinds["agent"].observations
    shown, number = simulator_of(environment).shown
    np.testing.assert_array_equal(now["0.arm.angle"][0, 0], shown["arm"]["angle"])
    np.testing.assert_array_equal(now["0.arm.on"][0, 0], shown["arm"]["on"])
    np.testing.assert_array_equal(now["0.view.0"][0, 0], shown["view"][0].transpose(2, 0, 1))
    assert np.flatnonzero(now["0.view.1"]).tolist() == [shown["view"][1][0], 2 + shown["view"][1][1]]
    np.testing.assert_array_equal(now["1"][0, 0], np.eye(4)[number])


@pytest.mark.parametrize("text", [Mission(), spaces.Text(5)])
def test_text_within_an_observation_is_left_out_which_is_said_once(text: Any, caplog: pytest.LogCaptureFixture) -> None:
    _say_what_is_left_out.cache_clear()
    space = spaces.Dict({"image": spaces.Box(0, 255, (7, 7, 3), np.uint8), "mission": text})
    environment = [picky(observation_space=space) for _ in range(3)][-1]
    assert list(environment.reset(0).kinds["agent"].observations) == ["image"]
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "observation 'mission' is text, which networks cannot read: it is left out"
    ]


@pytest.mark.parametrize(
    ("space", "ours", "action", "theirs"),
    [
        (spaces.Discrete(3, start=5), Discrete(3), 2, 7),
        (spaces.MultiDiscrete([2, 3], start=[0, 1]), MultiDiscrete((2, 3)), [1, 2], [1, 3]),
        (spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])), MultiDiscrete((2, 3, 4, 5)), [1, 2, 3, 4], [[1, 2], [3, 4]]),
        (spaces.MultiBinary(3), MultiDiscrete((2, 2, 2)), [1, 0, 1], [1, 0, 1]),
        (spaces.Box(0, 4, (3,)), Continuous(3), [-1, 0, 0.5], [0, 2, 3]),
        (spaces.Box(-2, 2, (2, 2)), Continuous(4), [-7, 0.5, 1, 7], [[-2, 1], [2, 2]]),
        (spaces.Box(np.array([-np.inf, 0]), np.array([np.inf, 8]), dtype=np.float64), Continuous(2), [7, 7], [7, 8]),
    ],
)
def test_action_space_is_decoded(space: Any, ours: ActionSpace, action: Any, theirs: Any) -> None:
    environment = picky(action_space=space)
    simulator = simulator_of(environment)
    assert environment.spaces.kinds[0].actions == ours
    environment.reset(0)
    environment.step({"agent": np.array([[action]], ours.array.dtype)})
    np.testing.assert_array_equal(simulator.last, theirs)


def test_bounds_are_never_exceeded_by_rounding() -> None:
    low, high = np.array([-0.1, 0.1, 1e-3], np.float32), np.array([0.3, 0.7, 1e3], np.float32)
    environment = picky(action_space=spaces.Box(low, high))
    environment.reset(0)
    for value in (-1.0, 1.0, 0.99999994, -0.99999994):
        environment.step({"agent": np.full((1, 1, 3), value, np.float32)})


@pytest.mark.parametrize(
    ("space", "complaint"),
    [
        (spaces.Text(5), "observation space Text is not understood"),
        (spaces.Sequence(spaces.Discrete(2)), "observation space Sequence is not understood"),
        (
            spaces.Tuple([spaces.Discrete(2), spaces.Dict({"x": spaces.Graph(spaces.Discrete(2), None)})]),
            r"observation '1\.x': observation space Graph is not understood",
        ),
        (spaces.Dict({}), "has no numbers to learn from"),
        (spaces.Dict({"mission": spaces.Text(5)}), "has no numbers to learn from"),
        (
            spaces.Dict({"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}),
            r"two observations would be called 'a\.b', \['a'\]\['b'\] and \['a\.b'\]; rename one",
        ),
        (spaces.Discrete(3 * 10**9), "the observation: its space Discrete has 3,000,000,000 choices.* 1,000,000: show"),
        (spaces.Dict({"n": spaces.MultiDiscrete([2**62, 2**62, 2])}), "observation 'n': its space Multi.* choices"),
    ],
)
def test_observation_space_that_does_not_fit_is_refused(space: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        picky(observation_space=space)


def test_action_space_that_does_not_fit_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"action space Tuple is not understood.*wrappers: \['my_lab.wrappers:OneChoice'\]"
    ):
        picky(action_space=spaces.Tuple([spaces.Discrete(2)]))


def test_unknown_id_names_near_ones() -> None:
    with pytest.raises(UserError, match="knows no environment 'CartPol-v1'; did you mean 'CartPole-v1'"):
        make("CartPol-v1")


def test_unknown_argument_is_named() -> None:
    with pytest.raises(UserError, match="environment.kwargs of 'CartPole-v1'.*'gravty'"):
        make("CartPole-v1", gravty=1)


def test_missing_module_of_an_id_is_named() -> None:
    with pytest.raises(UserError, match="needs the package 'no_such_module', which is not installed"):
        make("no_such_module:Some-v0")


def test_render_gives_a_picture_only_when_asked() -> None:
    pytest.importorskip("pygame")
    quiet, drawing = make("CartPole-v1", 2), build(Settings(factory="gymnasium", id="CartPole-v1"), 2, 0, render=True)
    quiet.reset(0)
    drawing.reset(0)
    picture = drawing.render()
    assert quiet.render() is None
    assert picture is not None
    assert (picture.shape, picture.dtype) == ((400, 600, 3), np.uint8)
    drawing.close()
