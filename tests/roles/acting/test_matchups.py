"""Rounds against opponents: who meets whom, how often, and what is told of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from srlhpc.comm.parameters import LocalSubscription, ParameterSource
from srlhpc.comm.protocol import Report
from srlhpc.policies.policy import Policy
from srlhpc.roles.acting import evaluator
from srlhpc.roles.acting.evaluator import Evaluator
from srlhpc.roles.acting.matchups import Matchups, Met, Pairing, PlayedSide
from srlhpc.roles.acting.player import Player
from tests.roles.counting_policy import CountingPolicy
from tests.roles.playing import summary
from tests.scripted import CHOICES, Script, Scripted

SIDES = {"left": "default", "right": "default"}
EPISODES = 3


class Fixed(CountingPolicy):
    """Plays the action that its weight names, so that greater versions win."""

    def act(self, observations: Any, state: Any, first: Any, **rest: Any) -> Any:
        acted = super().act({"obs": observations["obs"][:, :1]}, state, first, **rest)
        return acted._replace(actions=acted.actions * 0 + int(self.weight.item()) % CHOICES)


class Playing:
    """An evaluator of two sides whose policy has versions 0, 1 and 2."""

    def __init__(
        self, *met: Met, players: tuple[str, ...] = ("live",), gone: tuple[int, ...] = (), most_steps: float = math.inf
    ) -> None:
        self.environment = Scripted([[Script(1)], [Script(2)]], {"agent": tuple(SIDES)})
        self.kind = self.environment.spaces.kinds[0]
        self.versions, self.gone = [0, 1, 2], gone
        self.loads: list[tuple[str, int]] = []
        self.source = ParameterSource(1)
        self.matchups = Matchups(
            [PlayedSide(f"{policy}-{place}", policy, (name,)) for place, (name, policy) in enumerate(SIDES.items())],
            met,
            players,
            tags={"early": 1, "never": 7},
            kept=lambda policy, live: [version for version in self.versions if version < live],
            trained=("default",),
            network=lambda policy: Fixed(self.kind),
            load=self._load,
            player=lambda network, policy, side: Player(network, "agent", (side,), 2),
        )
        live = Fixed(self.kind)
        self.evaluator = Evaluator(
            "evaluator-0", self.environment, {"default": Player(live, "agent", (0, 1), 2)},
            {"default": LocalSubscription(self.source)}, episodes=EPISODES, every_updates=2,
            seed=lambda *numbers: sum(numbers), episode_summary=summary, matchups=self.matchups, most_steps=most_steps,
        )  # fmt: skip

    def _load(self, network: Policy, policy: str, updates: int) -> bool:
        self.loads.append((policy, updates))
        if updates in self.gone:
            return False
        network.weight.data.fill_(updates)  # type: ignore[union-attr, operator]
        return True

    def round(self, version: int) -> list[dict[str, Any]]:
        """What is reported after a version was published."""
        self.source.publish(version, lambda vector: vector.fill(version))
        for _ in range(200):
            self.evaluator.poll()
        return self.reported().evaluations

    def reported(self) -> Report:
        """What all its news is."""
        whole = Report(1, "here", 1)
        while True:
            report = Report(1, "here", 1)
            self.evaluator.fill(report)
            whole.pairings += report.pairings
            whole.evaluations += report.evaluations
            if not self.evaluator.has_news:
                return whole

    def pairs(self, version: int) -> list[tuple[str, str, str, int]]:
        self.source.publish(version, lambda vector: vector.fill(version))
        for _ in range(200):
            self.evaluator.poll()
        rows = self.reported().pairings
        assert {row["version"] for row in rows} == {version}
        return [(row["side"], row["player"], row["opponent"], row["games"]) for row in rows]


def test_each_side_plays_exactly_so_many_games_against_each_version() -> None:
    playing = Playing(Met(0, "default", "versions"), Met(1, "default", "versions"))
    assert playing.pairs(4) == [
        (side, "default@4", f"default@{version}", EPISODES)
        for side in ("default-0", "default-1")
        for version in (0, 1, 2)
    ]


def test_tag_whose_version_is_not_there_yet_is_left_out() -> None:
    playing = Playing(Met(0, "default", "never"), Met(0, "default", "early"))
    assert playing.pairs(4) == [("default-0", "default@4", "default@1", EPISODES)]


def test_version_that_is_pruned_meanwhile_is_left_out() -> None:
    playing = Playing(Met(0, "default", "versions"), gone=(1,))
    assert [pair[2] for pair in playing.pairs(4)] == ["default@0", "default@2"]


def test_two_versions_meet_in_one_round_only() -> None:
    playing = Playing(Met(0, "default", "early"), players=("live", "versions"))
    opponents = [(player, opponent) for _, player, opponent, _ in playing.pairs(4)]
    assert opponents == [(f"default@{version}", "default@1") for version in (4, 0, 2)]
    assert [pair[1] for pair in playing.pairs(6)] == ["default@6"]


def test_decided_pairings_are_known_after_a_resume() -> None:
    before = Playing(Met(0, "default", "early"), players=("versions",))
    assert len(before.pairs(4)) == 2
    after = Playing(Met(0, "default", "early"), players=("versions",))
    after.evaluator.load_state(before.evaluator.save_state())
    assert after.round(6) == []


def test_round_that_is_left_decides_nothing() -> None:
    playing = Playing(Met(0, "default", "early"), players=("versions",))
    playing.source.publish(4, lambda vector: vector.fill(4))
    for _ in range(6):
        playing.evaluator.poll()
    playing.evaluator.start_over()
    assert len(playing.pairs(4)) == 2


def test_weights_are_those_of_the_pairing() -> None:
    playing = Playing(Met(0, "default", "versions"))
    (found,) = playing.round(4)
    taken = {agent: {action for *_, name, action in playing.environment.received if name == agent} for agent in SIDES}
    assert taken["left"] == {4 % CHOICES}
    assert taken["right"] >= {0, 1, 2}
    assert found["episodes"] == 3 * EPISODES


def row(wins: int, losses: int, unfinished: int = 0) -> dict[str, Any]:
    return {"games": 10, "wins": wins, "losses": losses, "unfinished": unfinished}


def test_win_rate_counts_what_is_live_against_all_that_stay_if_any_are_named() -> None:
    live, early, never, old = (Pairing(0, -1, "default", version) for version in (-1, 1, 7, 0))
    stay = Playing(Met(0, "default", "versions"), Met(0, "default", "early"), Met(0, "default", "never")).matchups
    assert stay.win_rate({old: row(10, 0), early: row(4, 6), never: row(10, 0)}) == pytest.approx(0.7)
    assert stay.win_rate({old: row(10, 0), early: row(4, 6)}) is None
    assert stay.win_rate({early: row(4, 6), never: row(10, 0, unfinished=1)}) is None
    change = Playing(Met(0, "default", "versions"), Met(0, "default", "live")).matchups
    assert change.win_rate({}) is None
    # Version 1 has a tag, but is met as one of many.
    assert change.win_rate({early: row(10, 0), live: row(5, 5)}) == pytest.approx(0.75)
    assert change.win_rate({early: row(10, 0), Pairing(0, 1, "default", 0): row(0, 10)}) == pytest.approx(1.0)


def test_opponent_that_is_named_twice_is_met_once() -> None:
    playing = Playing(Met(0, "default", "versions"), Met(0, "default", "early"))
    assert [pair[2] for pair in playing.pairs(4)] == ["default@0", "default@1", "default@2"]


def test_round_of_very_many_pairings_is_reported_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "PAIRINGS_BYTES", 1000)
    playing = Playing(Met(0, "default", "versions"), players=("live", "versions"))
    playing.source.publish(4, lambda vector: vector.fill(4))
    for _ in range(1000):
        playing.evaluator.poll()
    first = Report(1, "here", 1)
    playing.evaluator.fill(first)
    assert 0 < len(first.pairings) < 12
    assert first.evaluations == []
    rest = playing.reported()
    assert len(first.pairings) + len(rest.pairings) == 9
    assert [found["version"] for found in rest.evaluations] == [4]


def test_what_is_said_of_a_round_without_end_counts_all_pairings(caplog: pytest.LogCaptureFixture) -> None:
    playing = Playing(Met(0, "default", "versions"), most_steps=1)
    (found,) = playing.round(4)
    assert found["unfinished"] > 0
    assert f"{found['episodes']} of {3 * EPISODES} episodes ended" in caplog.text
    assert found["win_rate"] is None
