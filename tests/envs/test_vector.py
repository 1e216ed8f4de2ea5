"""A user's simulator of copies: its ends, its state, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from envs.vector import Settings, build
from srlhpc.doctor.random_play import keep
from srlhpc.environment import ArraySpec, Discrete, Environment
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance
from tests.envs import own_vectors
from tests.envs.own_vectors import LIMIT, SavedWalk, Walk

HERE = "tests.envs.own_vectors"
WALKS = ["Walk", "WalkThatBeginsAnewAtOnce", "WalkThatBeginsAnewLater"]


def made(name: str, num_environments: int = 3, **kwargs: Any) -> Environment:
    return build(Settings(factory="vector", simulator=f"{HERE}:{name}", kwargs=kwargs), num_environments, 1)


class TestWalk(EnvironmentConformance):
    settings = {"factory": "vector", "simulator": f"{HERE}:Walk"}


class TestWalkThatBeginsAnewAtOnce(EnvironmentConformance):
    settings = {"factory": "vector", "simulator": f"{HERE}:WalkThatBeginsAnewAtOnce"}


class TestWalkThatBeginsAnewLater(EnvironmentConformance):
    settings = {"factory": "vector", "simulator": f"{HERE}:WalkThatBeginsAnewLater"}


class TestSavedWalk(EnvironmentConformance):
    settings = {"factory": "vector", "simulator": f"{HERE}:SavedWalk"}
    offers_state = True


class TestMaskedWalk(EnvironmentConformance):
    settings = {"factory": "vector", "simulator": f"{HERE}:MaskedWalk"}


def test_spaces_are_those_of_one_copy() -> None:
    (kind,) = made("Walk").spaces.kinds
    assert kind.observations == {"place": ArraySpec((1,), "float32"), "time": ArraySpec((2,), "float32")}
    assert kind.actions == Discrete(2)


@pytest.mark.parametrize("name", WALKS)
def test_records_are_those_of_the_simulator_stepped_by_hand(name: str) -> None:
    environment = made(name, num_environments=1)
    step = keep(environment.reset(3))
    lone = Walk(1)
    begun, place = True, lone.reset(3)["place"]
    random = np.random.default_rng(0)
    ends = 0
    for _ in range(60):
        now = step.kinds["agent"]
        np.testing.assert_array_equal(now.observations["place"][:, 0], place)
        assert now.first.all() == begun
        action = random.integers(2, size=(1, 1))
        step = keep(environment.step({"agent": action}))
        after = step.kinds["agent"]
        if not now.valid.all():
            # Begun anew; the draws before were those of resets that are not seen.
            place, begun = after.observations["place"][:, 0].copy(), True
            lone.place[:], lone.time[:] = place[:, 0], 0
            assert np.abs(place) <= 1
            assert not after.rewards.any()
            continue
        seen, reward, fell, late, _ = lone.step(action[:, 0])
        place, begun = seen["place"], False
        assert (after.rewards[0, 0], after.terminated[0, 0], after.truncated[0, 0]) == (reward[0], fell[0], late[0])
        ends += int(fell[0] | late[0])
    assert ends > 5


def test_metrics_are_those_of_the_episodes_that_ended() -> None:
    environment = made("Walk", num_environments=4, width=100.0)
    environment.reset(1)
    episodes = [
        episode for _ in range(LIMIT) for episode in environment.step({"agent": np.ones((4, 1), np.int64)}).episodes
    ]
    assert [episode.metrics for episode in episodes] == [{"success": 1.0}] * 4
    assert {episode.steps for episode in episodes} == {LIMIT}


def refused(simulator: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(own_vectors, "Wrong", simulator, raising=False)
    with pytest.raises(UserError) as caught:
        made("Wrong")
    return str(caught.value)


def test_simulator_that_does_not_say_how_episodes_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused(type("Wrong", (Walk,), {"autoreset": None}), monkeypatch)
    assert f"environment.simulator: {HERE}:Wrong: its autoreset is None; say in the class" in said


def test_simulator_that_cannot_begin_some_copies_anew_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        autoreset = "same_step"
        observation_space, action_space = Walk.observation_space, Walk.action_space

        def __init__(self, num_environments: int) -> None: ...
        def reset(self, seed: int) -> None: ...
        def step(self, actions: Any) -> None: ...

    assert "has no `reset_some`, which it must have; it takes a mask of copies" in refused(Wrong, monkeypatch)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tests.envs.own_vectors:Wlak", "has no 'Wlak'"),
        ("tests.envs.nothing:Walk", "no module 'tests.envs.nothing'"),
    ],
)
def test_class_that_is_not_there_is_refused(path: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(Settings(factory="vector", simulator=path), 1, 1)


def test_reset_that_tells_more_than_observations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_info = {"reset": lambda self, seed: (Walk.reset(self, seed), {})}
    monkeypatch.setattr(own_vectors, "Wrong", type("Wrong", (Walk,), with_info), raising=False)
    with pytest.raises(ValueError, match="`reset` returned 2 values, expected observations alone"):
        made("Wrong").reset(1)


def test_state_without_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"save_state": lambda self: [self.place], "load_state": lambda self, state: None}
    monkeypatch.setattr(own_vectors, "Wrong", type("Wrong", (Walk,), listed), raising=False)
    environment = made("Wrong")
    environment.reset(1)
    with pytest.raises(ValueError, match="what save_state gives is list"):
        environment.save_state()


def test_simulator_is_not_asked_for_its_state_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(SavedWalk):
        def __init__(self, num_environments: int) -> None:
            super().__init__(num_environments)
            del self.random

    monkeypatch.setattr(own_vectors, "Late", Late, raising=False)
    environment = made("Late")
    assert environment.save_state() == {}
    environment.reset(1)
    assert environment.save_state()


def wrong_step(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch, base: type[Walk] = Walk) -> str:
    monkeypatch.setattr(own_vectors, "Wrong", type("Wrong", (base,), changes), raising=False)
    environment = made("Wrong")
    environment.reset(1)
    try:
        for _ in range(LIMIT + 1):
            environment.step({"agent": np.ones((3, 1), np.int64)})
    except ValueError as error:
        return str(error)
    return "nothing"


def test_what_a_simulator_returns_wrongly_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(change: Any) -> Any:
        return {"step": lambda self, actions: change(Walk.step(self, actions))}

    assert "`step` returned 3 values" in wrong_step(step(lambda returned: returned[:3]), monkeypatch)
    ints = step(lambda returned: (*returned[:2], returned[2].astype(int), *returned[3:]))
    assert "terminated has dtype int64, expected bool" in wrong_step(ints, monkeypatch)
    short = step(lambda returned: (returned[0], returned[1][:2], *returned[2:]))
    assert "rewards has shape (2,) float64, expected one value for each of 3" in wrong_step(short, monkeypatch)
    listed = step(lambda returned: (*returned[:4], {"metrics": [1.0]}))
    assert "info['metrics'] is list [1.0], expected a mapping of names" in wrong_step(listed, monkeypatch)
    numbered = step(lambda returned: (*returned[:4], {"metrics": {3: returned[1]}}))
    assert "info['metrics'] is dict {3: array(" in wrong_step(numbered, monkeypatch)
    lost = {"step": lambda self, actions: Walk.step(self, actions)[:4], "autoreset": "same_step"}
    assert "info has no 'final_observations'" in wrong_step(lost, monkeypatch)
    few = {"reset_some": lambda self, which: {"place": self.seen()["place"][which], "time": self.seen()["time"]}}
    assert "reset_some has shape (" in wrong_step(few, monkeypatch)
