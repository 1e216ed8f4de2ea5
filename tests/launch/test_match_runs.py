"""Whole runs whose sides meet the past."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.data.checkpoint_names import updates_of
from srlhpc.pictures.curves import metrics_lines
from srlhpc.pictures.ratings import draw_ratings, read_games
from srlhpc.playing import plan_here
from srlhpc.ranks.serial import run_serial
from srlhpc.ranks.serial_state import GENERATORS
from srlhpc.roles.coordinating import status
from srlhpc.runs.matches import evaluation_lines, match_lines
from srlhpc.runs.starting_weights import copy_weights
from srlhpc.runs.state import run_state
from srlhpc.runs.versions import version_files
from srlhpc.specs.load import load_experiment
from tests.launch.fake_runs import wait_for
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_mpi_runs import LIMIT_SECONDS, ranks


def job(stop: dict[str, Any], *, past: float = 0.5, kind: str = "server", **changes: Any) -> dict[str, Any]:
    made = settings(
        {"factory": "rock_paper_scissors"},
        stop=stop,
        checkpoint={"every_seconds": None, "every_updates": 10},
        actors={"ranks": 2, "ring": 2, "environments": 4, "inference": {"kind": kind}},
    )
    return made | {
        "agents": [{"match": "agent_0"}, {"match": "agent_1"}],
        "versions": {"every_updates": 3, "keep": 4},
        "matches": {
            "rule": {"kind": "fictitious"}, "shares": {"self_play": 1 - past, "past": past}, "resident": 2, "lot": 16,
        },
    } | changes  # fmt: skip


def test_serial_run_meets_its_past_and_says_how_it_did(tmp_path: Path) -> None:
    what = job({"updates": 20})
    paths = make_run(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    state = run_state(paths)
    games = [found["games"] for found in state["matches"]["past"]]
    # Half of the groups play themselves.
    assert abs(sum(games) - state["matches"]["self_play"]) <= 4 * 16
    assert min(games) >= 50
    first, second, last = match_lines(state)
    assert first.startswith("  default as 'agent_0' against 4 versions of default as 'agent_1': won ")
    assert second.startswith("  default as 'agent_1' against ")
    assert "matchmaker: " in last
    tables = tree_of(paths, 20)["matches"]["results"]
    assert {name: int(np.sum(tables[name]["counts"])) for name in tables} == {
        "0-1": games[0], "1-0": games[1],
    }  # fmt: skip


def test_checkpoint_of_one_run_goes_on_with_its_results(tmp_path: Path) -> None:
    what = job({"updates": 10})
    paths = make_run(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    before = run_state(paths)["matches"]
    what = job({"updates": 20})
    change_job(paths, what)
    run_serial(paths, make_attempt(paths, what, checkpoint(paths, 10))[0])
    after = run_state(paths)["matches"]
    assert after["self_play"] > before["self_play"]
    assert sum(found["games"] for found in after["past"]) > sum(found["games"] for found in before["past"]) > 0


def test_evaluators_play_versions_and_other_runs_and_tell_of_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    what = job({"updates": 6})
    other = make_run(tmp_path / "other", what)
    run_serial(other, make_attempt(other, what)[0])
    rival = what["policies"]["default"] | {"weights_from": str(checkpoint(other, 6))}
    what = job({"updates": 10}) | {"policies": {**what["policies"], "rival": rival}}
    what["versions"] |= {"tags": {"first": 0}}
    what["evaluators"] = {
        "ranks": 1, "episodes": 40, "environments": 8, "every_updates": 3, "draw_actions": True,
        "opponents": [{"policy": "default", "version": "first"}, {"policy": "rival"}],
    }  # fmt: skip
    del what["matches"]
    paths = make_run(tmp_path / "this", what)
    copy_weights(plan_here(load_experiment(paths.spec)), paths)
    run_serial(paths, make_attempt(paths, what)[0])
    state = run_state(paths)
    rows = state["evaluation"]["pairings"]
    assert [(row["opponent"], row["games"]) for row in rows] == [("default@0", 40)] * 2 + [("rival", 40)] * 2
    assert len({row["wins"] for row in rows}) > 1
    expected = f"  evaluated after {state['evaluation']['version']} updates: default@"
    assert all(line.startswith(expected) for line in evaluation_lines(state))
    games = read_games(paths)
    assert {name.partition("@")[0] for name in games.players} == {"default", "rival"}
    # Each side of each round, against both.
    assert games.counts.sum() / 2 == 160 * (games.players.index("rival") - 1)
    draw_ratings({"this": games}, tmp_path / "ratings.png")
    assert (tmp_path / "ratings.png").stat().st_size > 10_000
    best = tree_of(paths, 10)["meta"]
    assert best["evaluation"]["win_rate"] == pytest.approx(0.5, abs=0.4)


def evaluated_job(stop: dict[str, Any], **evaluators: Any) -> dict[str, Any]:
    what = job(stop)
    del what["matches"]
    return what | {
        "evaluators": {"ranks": 1, "episodes": 8, "environments": 4, "every_updates": 3, "draw_actions": True}
        | evaluators
    }


def test_opponents_change_nothing_of_what_is_drawn_elsewhere(tmp_path: Path) -> None:
    ends = []
    for name, opponents in (("with", [{"policy": "default", "version": "versions"}]), ("without", None)):
        what = evaluated_job({"updates": 10}, opponents=opponents)
        paths = make_run(tmp_path / name, what)
        run_serial(paths, make_attempt(paths, what)[0])
        ends.append(tree_of(paths, 10))
    generators = [end["roles"][GENERATORS]["torch"]["cpu"] for end in ends]
    assert (generators[0] == generators[1]).all()


def test_resumed_run_has_each_meeting_of_two_versions_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No second passes between what is played and the checkpoint.
    monkeypatch.setattr(status, "STATUS_SECONDS", math.inf)

    what = evaluated_job(
        {"updates": 20}, players=["versions"], opponents=[{"policy": "default", "version": "versions"}]
    )
    what["versions"]["keep"] = None
    paths = make_run(tmp_path, what)

    def met(*begin: Path) -> list[tuple[str, str, str]]:
        run_serial(paths, make_attempt(paths, what, *begin)[0])
        rows = [row for line in metrics_lines(paths) for row in line.get("played", [])]
        return [(row["side"], row["player"], row["opponent"]) for row in rows]

    expected = met()
    assert len(expected) == len(set(expected)) > 8
    assert met(checkpoint(paths, 10)) == expected


def psro_job(stop: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = job(stop, **changes)
    made["versions"]["keep"] = None
    made["matches"] |= {
        "rule": {"kind": "psro", "solver": "regret_matching", "episodes": 50},
        "shares": {"past": 0.5, "payoffs": 0.5},
    }
    return made


def test_versions_are_measured_and_mixed(tmp_path: Path) -> None:
    what = psro_job({"updates": 12})
    paths = make_run(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    payoffs = run_state(paths)["matches"]["payoffs"]
    first, second = payoffs["players"]
    assert first[:2] == second[:2] == [0, 3]
    assert [sum(shares) for shares in payoffs["mixtures"]] == pytest.approx([1.0, 1.0])
    counts = tree_of(paths, 10)["matches"]["payoffs"]["counts"]
    assert counts.max() == 50
    assert any(
        line.startswith(f"  payoffs of {len(first)} x {len(second)} versions; ")
        for line in match_lines(run_state(paths))
    )


@pytest.mark.mpi
def test_table_of_payoffs_goes_on_without_a_killed_actor_and_after_a_resume(tmp_path: Path) -> None:
    what = psro_job({"updates": 100_000})
    what["actors"]["ranks"] = 3
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        wait_for(lambda: len(players(run.status)) > 2, LIMIT_SECONDS)
        run.kill("actor-1")
        wait_for(lambda: any("actor-1" in warning for warning in run.status["warnings"]), LIMIT_SECONDS)
        reached = len(players(run.status))
        wait_for(lambda: len(players(run.status)) > reached + 1, LIMIT_SECONDS)
        run.stop()
    saved = updates_of(max(paths.checkpoints.glob("updates-*.h5")))
    before = tree_of(paths, saved)["matches"]["payoffs"]
    assert before["counts"].max() == 50
    with ranks(paths, what, checkpoint(paths, saved)) as run:
        wait_for(lambda: len(players(run.status)) > len(before["players-0"]), LIMIT_SECONDS)
        run.stop()
        assert players(run.status)[: len(before["players-0"])] == before["players-0"].tolist()
    after = tree_of(paths, updates_of(max(paths.checkpoints.glob("updates-*.h5"))))["matches"]["payoffs"]
    assert after["counts"].max() == 50
    assert after["counts"][0, 0] == before["counts"][0, 0] == 50


def players(status: dict[str, Any]) -> list[int]:
    """Versions that the table of payoffs has for the first side."""
    found: list[int] = status.get("matches", {}).get("payoffs", {}).get("players", [[]])[0]
    return found


@pytest.mark.mpi
@pytest.mark.parametrize("kind", ["server", "inline"])
def test_sides_meet_the_past_and_go_on_without_a_killed_actor(kind: str, tmp_path: Path) -> None:
    what = job({"updates": 100_000}, past=1.0, kind=kind)
    what["actors"]["ranks"] = 3
    with ranks(make_run(tmp_path, what), what) as run:
        run.wait_for_updates(10)
        run.kill("actor-1")
        wait_for(lambda: any("actor-1" in warning for warning in run.status["warnings"]), LIMIT_SECONDS)
        run.wait_for_updates(run.status["updates"] + 20)
        run.stop()
        status = run.status
        assert status["matches"]["self_play"] == 0
        assert all(found["games"] > 0 for found in status["matches"]["past"])
        files = version_files(run.paths)["default"]
        assert [updates_of(file) % 3 for file in files[-4:]] == [0] * 4
        # What the past plays is not recorded: one side of two learns.
        assert status["roles"]["trainer"]["steps_trained"] == status["steps"]


@pytest.mark.mpi
def test_two_trainers_learn_from_both_sides_at_a_lag_of_0(tmp_path: Path) -> None:
    what = job({"updates": 12}, trainers={"ranks": 2})
    what["policies"]["default"]["max_policy_lag"] = 0
    what["actors"]["ranks"] = 4
    with ranks(make_run(tmp_path, what), what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
