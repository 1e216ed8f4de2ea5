from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from srlhpc.environment import KindStep
from srlhpc.roles.acting.turns import Turns
from tests.roles.playing import Play
from tests.turn_taking import Game, TurnTaking

AGENTS = ("a", "b")
GAMES = [
    [Game((0, 1, 0), {0: {1: 1}, 2: {0: 2, 1: 4}}), Game((1, 0), end="truncated")],
    [Game((0, 0, 0, 1), {0: {1: 1}, 1: {1: 2}, 3: {1: 4}})],
]


def steps_of(number: int) -> list[KindStep]:
    """What the environments show, copied."""
    environment = TurnTaking(GAMES)
    step, kept = environment.reset(0), []
    for _ in range(number):
        now = step.kinds["agent"]
        kept.append(replace(now, **{n: a.copy() for n, a in vars(now).items() if isinstance(a, np.ndarray)}))
        step = environment.step({"agent": np.zeros((2, 2), np.int64)})
    return kept


def follow(steps: list[KindStep]) -> list[Any]:
    """Rewards of agent b of both environments, as turns earn them."""
    turns = Turns(TurnTaking(GAMES).spaces.kinds[0], 2)
    turns.begin(steps[0])
    return [turns.follow(step).rewards[:, 1].tolist() for step in steps[1:]]


def test_rewards_from_before_a_first_turn_come_with_it() -> None:
    assert follow(steps_of(6)) == [[0, 0], [1, 0], [4, 0], [0, 1 + 2 + 4], [0, 0]]


def test_what_is_left_of_a_game_without_a_turn_is_forgotten() -> None:
    environment = TurnTaking([[Game((0,), {0: {1: 8}}), Game((1,))]])
    turns = Turns(environment.spaces.kinds[0], 1)
    turns.begin(environment.reset(0).kinds["agent"])
    for _ in range(4):
        step = environment.step({"agent": np.zeros((1, 2), np.int64)})
        assert (turns.follow(step.kinds["agent"]).rewards == 0).all()


def test_saved_state_goes_on_with_what_came_early() -> None:
    steps = steps_of(12)
    undisturbed = follow(steps)
    turns = Turns(TurnTaking(GAMES).spaces.kinds[0], 2)
    turns.begin(steps[0])
    for step, rewards in zip(steps[1:], undisturbed, strict=True):
        saved = turns.save_state()
        turns = Turns(TurnTaking(GAMES).spaces.kinds[0], 2)
        turns.load_state(saved)
        assert turns.follow(step).rewards[:, 1].tolist() == rewards


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"waits": (1, (0, 1), True)}, "agent 'b' of kind 'agent' in environment 0 is valid and waits at once"),
        ({"alive": (1, (0, 0), False)}, "is valid or waits, but is not alive"),
        ({"terminated": (1, (0, 0), True)}, "is valid or waits in the record after its end"),
        ({"waits": (1, (0, 0), False)}, "left the game without an end"),
        ({"waits": (3, (0, 0), True)}, "is valid or waits in the record after its end"),
        ({"terminated": (4, (0, 0), True)}, "gets an end (terminated or truncated) for a record in which it was not"),
        ({"rewards": (4, (0, 0), 1.0)}, "gets a reward for a record in which it was not in the game"),
        ({"truncated": (3, (0, 0), True)}, "is terminated and truncated at once"),
        ({"first": (0, (0, 1), True)}, "has first set in a record that is not valid"),
        ({"first": (2, (0, 0), True)}, "has first set though it has had a turn"),
        ({"first": (1, (0, 1), False)}, "has its first turn of an episode without first"),
        ({"alive": (6, (0, 0), False), "truncated": (6, (0, 0), True)}, "is truncated but no longer alive"),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], fault: str) -> None:
    steps = steps_of(12)
    for name, (time, place, value) in changes.items():
        getattr(steps[time], name)[place] = value
    with pytest.raises(ValueError, match="environment 0") as caught:
        follow(steps)
    assert fault in str(caught.value)


class Silent(TurnTaking):
    """Says of nobody that it waits."""

    def _look(self, env: int) -> None:
        super()._look(env)
        assert self._now.waits is not None
        self._now.waits[:] = False


def test_actor_refuses_agents_that_neither_act_nor_wait() -> None:
    play = Play(Silent([[Game((0, 1, 0))]]), default={"agents": (0, 1)})
    with pytest.raises(Exception, match="left the game without an end"):
        play.run(4)
