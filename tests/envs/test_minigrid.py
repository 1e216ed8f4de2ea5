from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from envs._minigrid_numbers import WORDS, planes, words
from envs._returned_values import SimulatorError
from envs.minigrid import Settings, build
from srlhpc.environment import Environment, KindStep
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

minigrid = pytest.importorskip("minigrid")
constants = pytest.importorskip("minigrid.core.constants")

DOORKEY = "MiniGrid-DoorKey-6x6-v0"


class TestDoorKey(EnvironmentConformance):
    settings = {"factory": "minigrid", "id": DOORKEY, "mission": False, "kwargs": {"max_steps": 20}}


class TestMissionsOfBabyAi(EnvironmentConformance):
    settings = {"factory": "minigrid", "id": "BabyAI-GoToLocal-v0", "kwargs": {"max_steps": 20}}


def make(id: str, num_environments: int = 1, render: bool = False, **chosen: Any) -> Environment:
    return build(Settings(factory="minigrid", id=id, **chosen), num_environments, 0, render)


def play(environment: Environment, action: int) -> KindStep:
    return environment.step({"agent": np.full((environment.num_environments, 1), action)}).kinds["agent"]


def by_hand(id: str, seed: int) -> tuple[Any, Any]:
    """The package's own level of 60 steps, started as ours starts its first one, and what it shows."""
    import gymnasium

    level = gymnasium.make(f"minigrid:{id}", max_steps=60)
    return level, level.reset(seed=int(np.random.SeedSequence(seed).generate_state(1)[0]))[0]


def code(image: np.ndarray) -> np.ndarray:
    """Codes `[X, Y, 3]` of planes `[21, Y, X]`."""
    objects, colours, states = np.split(image, [11, 17])
    assert set(np.unique(image)) <= {0, 255}
    return np.stack([part.argmax(axis=0).T for part in (objects, colours, states)], axis=-1)


@pytest.mark.parametrize("level_id", [DOORKEY, "BabyAI-GoToLocal-v0"])
def test_records_are_those_of_the_package_stepped_by_hand(level_id: str) -> None:
    ours, (alone, shown) = make(level_id, kwargs={"max_steps": 60}), by_hand(level_id, 3)
    random, now, ends = np.random.default_rng(0), ours.reset(3).kinds["agent"], 0
    for _ in range(300):
        seen = {key: array[0, 0] for key, array in now.observations.items()}
        np.testing.assert_array_equal(code(seen["image"]), shown["image"])
        assert seen["direction"].tolist() == np.eye(4)[shown["direction"]].tolist()
        mission = sorted(shown["mission"].replace(",", "").split())
        assert sorted(np.repeat(WORDS, seen["mission"].astype(int)).tolist()) == mission
        if not now.valid.item():
            shown = alone.reset()[0]
            now = play(ours, 6)
            assert now.first.item()
            continue
        choice = int(random.integers(7))
        shown, reward, terminated, truncated, _ = alone.step(choice)
        now = play(ours, choice)
        assert now.rewards.item() == np.float32(reward)
        assert (now.terminated.item(), now.truncated.item()) == (terminated, truncated and not terminated)
        ends += terminated or truncated
    assert ends > 1


def test_limit_truncates_and_success_terminates() -> None:
    cut = make("MiniGrid-Empty-5x5-v0", kwargs={"max_steps": 3})
    cut.reset(0)
    now = [play(cut, 0) for _ in range(3)][-1]
    assert (now.truncated.item(), now.terminated.item(), now.rewards.item()) == (True, False, 0.0)
    done = make("MiniGrid-Empty-5x5-v0", kwargs={"max_steps": 5})
    done.reset(0)
    # Two ahead, a turn to the right, two ahead: the goal, in the last step of the limit.
    now = [play(done, action) for action in (2, 2, 1, 2, 2)][-1]
    assert (now.truncated.item(), now.terminated.item()) == (False, True)
    assert now.rewards.item() == pytest.approx(0.1)


def test_planes_by_hand() -> None:
    image = np.zeros((2, 1, 3), np.uint8)
    image[1, 0] = [4, 5, 2]
    shown = planes(image)
    assert (shown.shape, shown.dtype) == ((21, 1, 2), np.uint8)
    assert [np.flatnonzero(shown[:, 0, x]).tolist() for x in (0, 1)] == [[0, 11, 17], [4, 16, 19]]


def test_planes_are_as_many_as_the_package_has_codes() -> None:
    assert max(constants.OBJECT_TO_IDX.values()) == 10
    assert max(constants.COLOR_TO_IDX.values()) == 5
    assert max(constants.STATE_TO_IDX.values()) < len(constants.DIR_TO_VEC) == 4


def test_words_are_counted_and_commas_left_out() -> None:
    shown = words("Pick up the box, then go to the box")
    counted = {word: int(count) for word, count in zip(WORDS, shown, strict=True) if count}
    assert counted == {"pick": 1, "up": 1, "the": 2, "box": 2, "then": 1, "go": 1, "to": 1}
    with pytest.raises(SimulatorError, match="the word 'unicorn'.*mission: false"):
        words("find the unicorn")


def test_all_words_of_the_package_are_known() -> None:
    from minigrid.wrappers import DictObservationSpaceWrapper

    assert {*DictObservationSpaceWrapper.get_minigrid_words()} - {","} <= {*WORDS}
    assert len({*WORDS}) == len(WORDS)


@pytest.mark.parametrize("level", ["GoToLocal", "PickupLoc", "GoToSeqS5R2", "PutNextLocal", "MiniBossLevel"])
def test_missions_of_babyai_have_no_other_words(level: str) -> None:
    environment = make(f"BabyAI-{level}-v0")
    for seed in range(20):
        assert environment.reset(seed).kinds["agent"].observations["mission"].sum() >= 3


def test_wrappers_of_the_package_may_show_the_whole_level() -> None:
    whole = make(DOORKEY, wrappers=["minigrid.wrappers.FullyObsWrapper"])
    image = whole.reset(0).kinds["agent"].observations["image"][0, 0]
    assert image.shape == (21, 6, 6)
    assert code(image)[..., 0].tolist().count([2] * 6) == 2  # walls on both sides
    with pytest.raises(UserError, match="has the code 255, .*take factory: gymnasium for images of pixels"):
        make(DOORKEY, wrappers=["minigrid.wrappers.RGBImgPartialObsWrapper"])
    with pytest.raises(UserError, match="is not that of MiniGrid.*take factory: gymnasium"):
        make(DOORKEY, wrappers=["minigrid.wrappers.ImgObsWrapper"])


def test_unknown_level_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'minigrid:MiniGrid-DoorKey-6x6-v0'"):
        make("MiniGrid-DorKey-6x6-v0")


def test_render_gives_a_picture_only_when_asked() -> None:
    quiet, drawing = make(DOORKEY), make(DOORKEY, render=True)
    quiet.reset(0), drawing.reset(0)
    picture = drawing.render()
    assert quiet.render() is None
    assert picture is not None
    assert (picture.ndim, picture.shape[2], picture.dtype) == (3, 3, np.uint8)
