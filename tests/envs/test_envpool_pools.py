"""What stands between EnvPool and the contract, tried with pools that follow a script; needs no package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from envs._envpool_atari import AtariPool
from envs._envpool_pools import Pool, PoolRecipe, _without_empty_bounds
from srlhpc.doctor.random_play import Seen, keep
from srlhpc.environment import Stack

TINY, LARGEST = np.finfo(np.float64).tiny, np.finfo(np.float64).max


def test_bounds_that_are_none_become_infinite() -> None:
    nameless = spaces.Box(np.array([TINY, 0.0]), np.array([LARGEST, 1.0]), dtype=np.float64)
    found = _without_empty_bounds(spaces.Dict({"arm": spaces.Dict({"angle": nameless}), "room": spaces.Discrete(2)}))
    assert found["arm"]["angle"] == spaces.Box(np.array([-np.inf, 0]), np.array([np.inf, 1]), dtype=np.float64)
    assert found["room"] == spaces.Discrete(2)


def test_spaces_that_mean_what_they_say_stay() -> None:
    for space in (spaces.Box(0, 255, (3,), np.uint8), spaces.Box(-1.0, 1.0, (2,), np.float32)):
        assert _without_empty_bounds(space) == space


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"max_episode_steps": None}, {}),
        ({"max_episode_steps": -1}, {"max_episode_steps": 2**31 - 1}),
        ({"max_episode_steps": 9, "size": [1, 2]}, {"max_episode_steps": 9, "size": (1, 2)}),
    ],
)
def test_options_are_passed_as_envpool_means_them(given: dict[str, Any], taken: dict[str, Any]) -> None:
    assert PoolRecipe("Any-v0", given, 2, 1).arguments == taken
    assert PoolRecipe("Any-v0", given, 2, 1, render=True).arguments == {**taken, "render_mode": "rgb_array"}


@dataclass(frozen=True)
class SeedsOnly(PoolRecipe):
    """Makes pools that know their seed alone."""

    def pool(self, seed: int) -> Any:
        box = spaces.Box(-1, 1, (1,))
        return SimpleNamespace(config={}, observation_space=box, action_space=box, reset=lambda: (seed, {}))


def test_pool_is_made_anew_for_every_reset_but_the_first_with_its_seed() -> None:
    pool = Pool(SeedsOnly("Any-v0", {}, 2, 1), 5)
    first = pool._pool
    assert pool.reset(seed=5)[0] == 5
    assert pool._pool is first
    assert pool.reset(seed=5)[0] == 5
    assert pool._pool is not first
    assert pool.reset(seed=6)[0] == 6
    assert Pool(SeedsOnly("Any-v0", {}, 2, 1), 5).reset(seed=6)[0] == 6


@dataclass
class Call:
    """What a pool tells after one call, of its only game."""

    frames: tuple[int, int]
    """The stack, oldest frame first."""
    lives: int = 3
    score: float = 0.0
    life_is_over: bool = False
    game_is_over: bool = False
    is_cut: bool = False


class GameScript:
    """A pool of one Atari game with `episodic_life` and `reward_clip`; notes the actions that it is told."""

    config = {"stack_num": 2, "gray_scale": True, "frame_skip": 4}  # noqa: RUF012
    single_observation_space = spaces.Box(0, 255, (2, 1, 1), np.uint8)
    single_action_space = spaces.Discrete(3)

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = iter(calls)
        self.told: list[int] = []

    def _shown(self, call: Call) -> tuple[Any, dict[str, Any]]:
        info = {"lives": np.array([call.lives]), "reward": np.array([call.score], np.float32)}
        return np.array(call.frames, np.uint8).reshape(1, 2, 1, 1), info | {"terminated": np.array([call.game_is_over])}

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        return self._shown(next(self._calls))

    def step(self, actions: Any) -> tuple[Any, ...]:
        self.told.append(int(actions[0]))
        call = next(self._calls)
        observations, info = self._shown(call)
        ends = np.array([call.life_is_over]), np.array([call.is_cut])
        return observations, np.sign(info["reward"]), *ends, info


def play(calls: Sequence[Call]) -> tuple[list[Seen], list[int]]:
    script = GameScript(calls)
    environment = AtariPool(script, 1)  # type: ignore[arg-type]
    assert environment.spaces.kinds[0].stacks == {"obs": Stack(2, "newest")}
    seen = [keep(environment.reset(0))]
    return seen + [keep(environment.step({"agent": np.array([[2]])})) for _ in calls[1:]], script.told


def row(seen: Sequence[Seen], name: str) -> list[float]:
    return [float(getattr(step.kinds["agent"], name)[0, 0]) for step in seen]


def test_stack_goes_on_over_a_lost_life_and_the_score_is_that_of_the_game() -> None:
    seen, told = play(
        [
            Call((1, 1)),
            Call((1, 2), score=7),
            Call((2, 3), lives=2, score=5, life_is_over=True),
            Call((3, 4), lives=2),
            Call((4, 5), lives=0, score=3, life_is_over=True, game_is_over=True),
            Call((6, 6)),
        ]
    )
    assert told == [2, 2, 0, 2, 0]
    assert row(seen, "valid") == [1, 1, 0, 1, 0, 1]
    assert row(seen, "first") == [1, 0, 0, 1, 0, 1]
    assert row(seen, "terminated") == [0, 0, 1, 0, 1, 0]
    assert row(seen, "rewards") == [0, 1, 1, 0, 1, 0]
    assert row(seen, "stacks_begin") == [1, 0, 0, 0, 0, 1]
    assert [len(step.episodes) for step in seen] == [0, 0, 0, 0, 1, 0]
    assert (seen[4].episodes[0].steps, dict(seen[4].episodes[0].returns)) == (3, {"agent": 15.0})


def test_game_that_ends_in_the_idle_frames_after_a_lost_life_is_reported() -> None:
    seen, _ = play(
        [
            Call((1, 1), lives=1),
            Call((1, 2), lives=0, score=4, life_is_over=True),
            Call((5, 5), lives=3),
            Call((5, 6), lives=3, score=2),
        ]
    )
    assert row(seen, "stacks_begin") == [1, 0, 1, 0]
    assert row(seen, "first") == [1, 0, 1, 0]
    assert [[dict(episode.returns) for episode in step.episodes] for step in seen] == [[], [], [{"agent": 4.0}], []]


def test_cut_is_a_truncation_whose_game_is_reported_once() -> None:
    seen, _ = play([Call((1, 1)), Call((1, 2), score=1, is_cut=True), Call((3, 3)), Call((3, 4))])
    assert (row(seen, "truncated"), row(seen, "terminated")) == ([0, 1, 0, 0], [0, 0, 0, 0])
    assert [len(step.episodes) for step in seen] == [0, 1, 0, 0]


def test_end_of_a_game_at_the_limit_of_steps_is_an_end() -> None:
    seen, _ = play([Call((1, 1)), Call((1, 2), lives=0, game_is_over=True, is_cut=True), Call((3, 3))])
    assert (row(seen, "truncated"), row(seen, "terminated")) == ([0, 0, 0], [0, 1, 0])
    assert [len(step.episodes) for step in seen] == [0, 1, 0]
