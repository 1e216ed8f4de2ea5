"""Games of PettingZoo in which agents act one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from envs.pettingzoo import Settings, build, from_simulators
from srlhpc.doctor.random_play import Seen, keep
from srlhpc.environment import Environment
from srlhpc.errors import UserError
from tests.environment_conformance import ContractConformance, EnvironmentConformance

pytest.importorskip("pettingzoo")


class TestTicTacToe(EnvironmentConformance):
    settings: ClassVar = {"factory": "pettingzoo", "env": "pettingzoo.classic.tictactoe.tictactoe"}
    is_random = False
    steps = 40


class TestConnectFour(EnvironmentConformance):
    settings: ClassVar = {"factory": "pettingzoo", "env": "pettingzoo.classic.connect_four.connect_four"}
    is_random = False
    num_environments = 2


MOVES = ("a", "b", "c", "a", "b", "a", "c", "c", "b", "a")
"""Whose turns they would be; who has left is passed over."""


class Round:
    """Three agents by turns, as an AECEnv: b is out with its second turn, and the others are cut with the last.

    Who moves gives 1 to each of the others. Who has ended is asked once more, at once or when its turn comes.
    """

    metadata: ClassVar[Mapping[str, Any]] = {"render_modes": [], "name": "round"}
    render_mode = None

    def __init__(self, moves: Sequence[str] = MOVES, *, asks_at_once: bool = True) -> None:
        self.possible_agents = ["a", "b", "c"]
        self._moves = moves
        self._asks_at_once = asks_at_once

    def agent_iter(self) -> None:
        """Says that it is an AECEnv."""

    def observation_space(self, agent: str) -> Any:  # noqa: ARG002
        from gymnasium import spaces

        mask = spaces.Box(0, 1, (2,), np.int8)
        return spaces.Dict({"observation": spaces.Box(0, 99, (1,), np.float32), "action_mask": mask})

    def action_space(self, agent: str) -> Any:  # noqa: ARG002
        from gymnasium.spaces import Discrete

        return Discrete(2)

    def reset(self, seed: int | None = None) -> None:  # noqa: ARG002
        self.agents = list(self.possible_agents)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._time = 0
        self.agent_selection = self._moves[0]

    def observe(self, agent: str) -> dict[str, Any]:
        mask = [1, 0] if agent == self.agent_selection else [0, 0]
        return {"observation": np.array([self._time], np.float32), "action_mask": np.array(mask, np.int8)}

    def step(self, action: Any) -> None:
        mover = self.agent_selection
        if self.terminations[mover] or self.truncations[mover]:
            assert action is None
            self.agents.remove(mover)
            for flags in (self.terminations, self.truncations, self.rewards, self.infos):
                del flags[mover]
        else:
            assert action == 0
            self.rewards = {agent: float(agent != mover) for agent in self.agents}
            if mover == "b" and "b" in self._moves[: self._time]:
                self.terminations["b"] = True
            self._time += 1
            if self._time == len(self._moves):
                self.truncations = dict.fromkeys(self.agents, True)
        ended = [agent for agent in self.agents if self.terminations[agent] or self.truncations[agent]]
        if len(ended) < len(self.agents) and not self._asks_at_once:
            ended = []
        while not ended and self.agents and self._moves[self._time] not in self.agents:
            self._time += 1
        if self.agents:
            self.agent_selection = ended[0] if ended else self._moves[self._time]

    def close(self) -> None:
        pass


class TestRound(ContractConformance):
    is_random = False
    # Nothing depends on what is chosen.
    test_environments_differ = None
    steps = 30

    @classmethod
    def build(cls, seed: int = 1) -> Environment:
        return from_simulators([Round() for _ in range(cls.num_environments)], seed, "rounds")


class TestRoundThatAsksLater(TestRound):
    @classmethod
    def build(cls, seed: int = 1) -> Environment:
        return from_simulators([Round(asks_at_once=False) for _ in range(cls.num_environments)], seed, "rounds")


def told(steps: list[Seen], name: str) -> list[list[Any]]:
    found: list[list[Any]] = [step.column(name)[0].tolist() for step in steps]
    return found


@pytest.mark.parametrize("asks_at_once", [True, False])
def test_rewards_deaths_and_cuts_come_to_whom_they_belong(asks_at_once: bool) -> None:
    environment = from_simulators([Round(asks_at_once=asks_at_once)], 0, "rounds")
    # One kind, whose agents are the first to the third.
    (kind,) = environment.spaces.kinds
    assert (kind.agents, kind.turn_steps, kind.has_action_masks) == (("a", "b", "c"), 5, True)
    steps = [keep(environment.reset(0))]
    for _ in range(10):
        steps.append(keep(environment.step({kind.name: np.zeros((1, 3), np.int64)})))
    order = "abcabacca"
    assert told(steps[:9], "valid") == [[agent == mover for agent in "abc"] for mover in order]
    assert told(steps[:3], "first") == told(steps[:3], "valid")
    assert not any(any(row) for row in told(steps[3:10], "first"))
    assert told(steps[1:10], "rewards") == [
        [float(a != m and (a != "b" or t < 5)) for a in "abc"] for t, m in enumerate(order)
    ]
    assert [row[1] for row in told(steps, "terminated")] == [time == 5 for time in range(11)]
    assert told(steps[9:10], "truncated") == [[True, False, True]]
    # Who was cut is shown a last observation, who has died is not.
    assert told(steps[9:10], "alive") == [[True, False, True]]
    assert steps[9].kinds[kind.name].observations["observation"][0, :, 0].tolist() == [10, 0, 10]
    (episode,) = steps[9].episodes
    assert (episode.steps, dict(episode.returns)) == (9, {"a": 5.0, "b": 3.0, "c": 6.0})
    assert told(steps[10:], "first") == [[True, False, False]]


def test_environment_whose_agents_act_at_once_has_no_turns() -> None:
    settings = {"factory": "pettingzoo", "env": "mpe2.simple_spread_v3", "turn_steps": 3}
    with pytest.raises(UserError, match=r"turn_steps: is 3, but agents of .* act at once; leave it out"):
        build(Settings.model_validate(settings), 1, 0)


def test_state_of_an_environment_in_turns_is_refused() -> None:
    with pytest.raises(UserError, match=r"^environment\.state: is true, but agents that take turns"):
        from_simulators([Round()], 0, "rounds", gives_state=True)
