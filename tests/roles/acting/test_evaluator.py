"""Rounds of an exact number of episodes with frozen weights."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from srlhpc.comm.parameters import LocalSubscription, ParameterSource
from srlhpc.comm.protocol import Command, Report
from srlhpc.environment import Kind
from srlhpc.roles.acting.evaluator import Evaluator
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.round import Round
from tests.roles.counting_policy import CountingPolicy
from tests.roles.playing import summary
from tests.scripted import CHOICES, Script, Scripted, scripted_spaces

LENGTHS = (1, 5)
"""Of all episodes of environments 0 and 1."""


class Recording(CountingPolicy):
    """Writes down the weight that it acts with; always plays action 1."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind or scripted_spaces({"agent": ("agent",)}).kinds[0], recurrent=True)
        self.weights: list[float] = []

    def act(self, observations: Any, state: Any, first: Any, **rest: Any) -> Any:
        assert rest["generator"] is None
        self.weights.append(self.weight.item())
        acted = super().act({"obs": observations["obs"][:, :1]}, state, first, **rest)
        return acted._replace(actions=acted.actions.clamp(max=CHOICES - 1))


def environment() -> Scripted:
    return Scripted([[Script(length)] for length in LENGTHS])


def played(episodes: int) -> Round:
    played = Round(environment(), [Player(Recording(), "agent", (0,), 2)], episodes, seed=1)
    while not played.is_done:
        played.advance()
    return played


@pytest.mark.parametrize("episodes", [1, 2, 7, 10])
def test_round_has_exactly_so_many_episodes(episodes: int) -> None:
    assert len(played(episodes).episodes) == episodes


def test_every_environment_plays_its_fixed_share_however_short_its_episodes_are() -> None:
    assert Counter(episode.environment for episode in played(7).episodes) == {0: 4, 1: 3}


@pytest.mark.parametrize(("most_steps", "ended", "unfinished"), [(4, {0: 4}, 3), (5, {0: 4, 1: 3}, 0)])
def test_environment_whose_episode_does_not_end_plays_no_more_and_the_others_go_on(
    most_steps: int, ended: dict[int, int], unfinished: int
) -> None:
    played = Round(environment(), [Player(Recording(), "agent", (0,), 2)], 7, seed=1, most_steps=most_steps)
    while not played.is_done:
        played.advance()
    assert Counter(episode.environment for episode in played.episodes) == ended
    assert played.unfinished == unfinished


def test_player_starts_its_state_over_with_each_episode() -> None:
    world = environment()
    played = Round(world, [Player(Recording(), "agent", (0,), 2)], 4, seed=1)
    while not played.is_done:
        played.advance()
    by_time = {time: action for env, _, time, _, action in world.received if env == 1}
    assert by_time == {0: 0, 1: 1, 2: 2, 3: 3, 4: 3}


class Drawing(CountingPolicy):
    """Acts at random where it is told to explore."""

    def __init__(self) -> None:
        super().__init__(scripted_spaces({"agent": ("agent",)}).kinds[0], recurrent=False)
        self.told: list[float] = []
        self.drawn: list[int] = []

    def act(self, observations: Any, state: Any, first: Any, *, exploration: Any, **rest: Any) -> Any:
        self.told += exploration["epsilon"].tolist()
        self.drawn += torch.randint(0, 1000, (1,), generator=rest["generator"]).tolist()
        acted = super().act({"obs": observations["obs"][:, :1]}, state, first, **rest)
        return acted._replace(actions=acted.actions.clamp(max=CHOICES - 1))


def test_player_explores_as_the_rule_says_of_evaluation_and_draws_by_the_seed_of_the_round() -> None:
    def drawn(player: Player, seed: int) -> list[int]:
        policy = player.policy
        assert isinstance(policy, Drawing)
        policy.drawn.clear()
        played = Round(environment(), [player], 3, seed=seed)
        while not played.is_done:
            played.advance()
        return policy.drawn.copy()

    player = Player(Drawing(), "agent", (0,), 2, exploration={"epsilon": 0.125})
    first = drawn(player, 1)
    assert drawn(player, 2) != first
    assert drawn(player, 1) == first
    assert isinstance(player.policy, Drawing)
    assert set(player.policy.told) == {0.125}


def test_players_act_for_their_own_agents() -> None:
    world = Scripted([[Script(2)]], {"agent": ("a", "b")})
    kind = world.spaces.kinds[0]
    still, counting = Recording(kind), Recording(kind)
    still.initial_state = lambda rows: {}  # type: ignore[method-assign]
    still._recurrent = False
    played = Round(world, [Player(still, "agent", (0,), 1), Player(counting, "agent", (1,), 1)], 1, seed=1)
    while not played.is_done:
        played.advance()
    assert [(agent, action) for _, _, _, agent, action in world.received] == [("a", 0), ("b", 0), ("a", 0), ("b", 1)]


class Evaluating:
    """An evaluator of rounds of three episodes every two updates."""

    def __init__(self, most_steps: float = math.inf) -> None:
        self.source = ParameterSource(1)
        self.policy = Recording()
        self.environment = environment()
        self.seeds: list[int] = []
        self.evaluator = Evaluator(
            "evaluator-0",
            self.environment,
            {"default": Player(self.policy, "agent", (0,), 2)},
            {"default": LocalSubscription(self.source)},
            episodes=3,
            every_updates=2,
            seed=self._seed,
            episode_summary=summary,
            most_steps=most_steps,
        )

    def _seed(self, version: int) -> int:
        self.seeds.append(version)
        return version

    def publish(self, version: int) -> None:
        def write(vector: NDArray[np.float32]) -> None:
            vector.fill(version)

        self.source.publish(version, write)

    def poll(self, times: int = 30) -> list[dict[str, Any]]:
        """The rounds that ended."""
        for _ in range(times):
            self.evaluator.poll()
        report = Report(1, "here", 1)
        self.evaluator.fill(report)
        return report.evaluations


def test_no_round_starts_before_there_are_weights() -> None:
    evaluating = Evaluating()
    assert evaluating.poll() == []
    assert evaluating.policy.weights == []


def test_round_reports_version_count_and_returns() -> None:
    evaluating = Evaluating()
    evaluating.publish(0)
    (finished,) = evaluating.poll()
    assert finished["version"] == 0
    assert finished["episodes"] == 3
    # Environment 0 plays two episodes of return 1, environment 1 one of 1 + 2 + 3 + 4 + 5.
    assert finished["return_mean"] == pytest.approx(17 / 3)
    assert finished["length_mean"] == pytest.approx(7 / 3)


def test_weights_do_not_change_within_a_round() -> None:
    evaluating = Evaluating()
    evaluating.publish(4)
    evaluating.poll(2)
    evaluating.publish(9)
    evaluating.poll()
    assert set(evaluating.policy.weights[:5]) == {4.0}
    assert set(evaluating.policy.weights[6:]) == {9.0}


def test_next_round_waits_for_so_many_updates() -> None:
    evaluating = Evaluating()
    evaluating.publish(1)
    assert len(evaluating.poll()) == 1
    evaluating.publish(2)
    assert evaluating.poll() == []
    evaluating.publish(3)
    assert [finished["version"] for finished in evaluating.poll()] == [3]
    assert evaluating.seeds == [1, 3]


def test_evaluator_stops_when_it_is_told() -> None:
    evaluating = Evaluating()
    evaluating.publish(0)
    evaluating.poll(1)
    evaluating.evaluator.obey(Command(stop=True))
    assert evaluating.evaluator.is_done
    steps = len(evaluating.policy.weights)
    assert evaluating.poll() == []
    assert len(evaluating.policy.weights) == steps


def test_round_with_an_endless_episode_ends_without_a_mean_and_the_next_begins() -> None:
    evaluating = Evaluating(most_steps=4)
    for version in (0, 2):
        evaluating.publish(version)
        (finished,) = evaluating.poll()
        assert (finished["version"], finished["episodes"], finished["unfinished"]) == (version, 2, 1)
        assert finished["return_mean"] is None
