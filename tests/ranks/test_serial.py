"""Whole serial runs: the same roles as over MPI, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.ranks.serial import run_serial
from srlhpc.roles.acting.actor import StepError
from srlhpc.roles.coordinating.progress import Progress
from srlhpc.roles.stillness import StandstillError
from srlhpc.roles.training.grants import LagLimiter
from srlhpc.runs.paths import AttemptPaths, RunPaths
from tests.finding import KEYS
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_exact_resume import differences

LSTM = {"kind": "mlp", "hidden": [16], "recurrent": {"kind": "lstm", "size": 8}}
RECALL = {"factory": "recall", "choices": 3, "delay": 2}
CATCH = {"factory": "catch", "rows": 5, "columns": 3}
FULL = {"stop": {"updates": 3}}


def train(root: Path, job: Mapping[str, Any], name: str = "run") -> tuple[RunPaths, AttemptPaths]:
    paths = make_run(root, job, name)
    attempt, _ = make_attempt(paths, job)
    run_serial(paths, attempt)
    return paths, attempt


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Every update that a run reports."""
    seen: list[Mapping[str, Any]] = []
    add = Progress.add_update

    def add_and_keep(progress: Progress, update: Mapping[str, Any]) -> None:
        seen.append(update)
        add(progress, update)

    monkeypatch.setattr(Progress, "add_update", add_and_keep)
    return seen


@pytest.mark.parametrize(
    "changes",
    [
        {"network": LSTM},
        {"network": LSTM, "batch": {"fragments": 8, "fragment_steps": 9},
         "normalize": {"observations": True, "returns": True}},
        {"network": LSTM | {"recurrent": {"kind": "gru", "size": 8}}, "actors": {"ranks": 2, "ring": 3,
         "environments": 4, "inference": {"kind": "inline"}}},
        {"normalize": {"observations": True, "returns": True}},
    ],
    ids=["lstm", "lstm, normalised", "gru inline", "no memory, normalised"],
)  # fmt: skip
def test_ratio_of_fresh_data_is_1_in_the_first_minibatch_of_every_update(
    changes: dict[str, Any], tmp_path: Path, updates: list[Mapping[str, Any]]
) -> None:
    # Episodes of 4 steps in fragments of 8 or 9: resets lie inside, at the start and at the end of fragments. One
    # minibatch an epoch: every record is looked at before the first step.
    algorithm = {"kind": "ppo", "learning_rate": 1e-2, "epochs": 2, "minibatches": 1}
    train(tmp_path, settings(RECALL, stop={"updates": 12}, algorithm=algorithm, **changes))
    deviations = [update["metrics"]["ratio_max_deviation_first"] for update in updates]
    assert len(deviations) == 12
    assert max(deviations) < 1e-4


def test_ratio_is_1_where_an_entity_network_is_trained_in_chunks_of_batches_used_twice(
    tmp_path: Path, updates: list[Mapping[str, Any]]
) -> None:
    network = {"kind": "entities", "recurrent": {"kind": "lstm", "size": 8}, "width": 8, "heads": 2, "features": 16}
    job = settings(
        {"factory": "tests.finding"},
        stop={"updates": 12},
        network=network | KEYS,
        algorithm={"kind": "ppo", "learning_rate": 1e-2, "epochs": 1, "minibatches": 1},
        batch={"fragments": 8, "fragment_steps": 12, "chunk_steps": 3, "uses": 2, "queue": 2},
        normalize={"returns": "pop_art", "decay": 0.9},
    )
    train(tmp_path, job)
    deviations = [update["metrics"]["ratio_max_deviation_first"] for update in updates]
    assert max(deviations[::2]) < 1e-4
    assert min(deviations[1::2]) > 1e-3


def test_ratio_is_1_with_burn_in_once_the_parameters_stand_still(
    tmp_path: Path, updates: list[Mapping[str, Any]]
) -> None:
    # Burn-in computes the state anew with the parameters of now, so the ratio is 1 only where they are those of then.
    algorithm = {"kind": "ppo", "learning_rate": {"start": 5e-2, "end": 0.0, "steps": 330}, "minibatches": 1}
    batch = {"fragments": 8, "fragment_steps": 9, "burn_in_steps": 4}
    train(tmp_path, settings(RECALL, stop={"updates": 12}, algorithm=algorithm, batch=batch, network=LSTM))
    rates = [update["metrics"]["learning_rate"] for update in updates]
    deviations = [update["metrics"]["ratio_max_deviation_first"] for update in updates]
    assert rates[7:] == [0.0] * 5
    assert max(deviations[8:]) < 1e-4
    assert max(deviations[:7]) > 1e-2


@pytest.mark.parametrize(("uses", "epochs"), [(1, 4), (2, 2)])
def test_catch_is_solved(uses: int, epochs: int, tmp_path: Path) -> None:
    algorithm = {"kind": "ppo", "learning_rate": 5e-3, "epochs": epochs, "minibatches": 2}
    job = settings(
        CATCH,
        stop={"updates": 150 * uses, "return_mean": 0.9},
        network={"kind": "mlp", "hidden": [32]},
        algorithm=algorithm,
        batch={"fragments": 16, "fragment_steps": 16, "uses": uses},
        actors={"ranks": 1, "ring": 2, "environments": 8},
    )
    _, attempt = train(tmp_path, job)
    assert outcome(attempt)["reason"] == "return_mean"


def test_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path: Path) -> None:
    job = settings(CATCH, **FULL)
    trees = [
        tree_of(train(tmp_path, job | {"seed": seed}, name)[0], 3)
        for seed, name in ((3, "one"), (3, "two"), (4, "three"))
    ]
    for tree in trees:
        tree["meta"].pop("spec")
    assert differences(trees[0], trees[1]) == []
    assert any(path.startswith("policies/default/parameters") for path in differences(trees[0], trees[2]))


def test_nothing_is_ever_older_than_the_parameters_it_trains(tmp_path: Path, updates: list[Mapping[str, Any]]) -> None:
    train(tmp_path, settings(CATCH, stop={"updates": 5}, actors={"ranks": 2, "ring": 3, "environments": 4}))
    assert [update["lag"] for update in updates] == [[0, 0, 0]] * 5
    assert updates[-1]["dropped_fragments"] == 0


def test_counters_are_exact(tmp_path: Path) -> None:
    environment = {"factory": "tests.scripted", "steps": [[1000]], "agents": ["a", "b"]}
    paths, _ = train(tmp_path, settings(environment, batch={"fragments": 16, "fragment_steps": 8}, **FULL))
    status = read_json(paths.status) or {}
    assert (status["updates"], status["steps"], status["agent_steps"]) == (3, 3 * 8 * 8, 3 * 8 * 16)
    assert status["roles"]["trainer"]["steps_trained"] == status["steps"]
    assert status["roles"]["actor"]["steps_acted"] == status["steps"]
    assert status["roles"]["policy_server"]["steps_inferred"] == status["agent_steps"]


def test_records_after_an_end_are_no_steps(tmp_path: Path) -> None:
    environment = {"factory": "tests.scripted", "steps": [[3]]}
    paths, _ = train(tmp_path, settings(environment, **FULL))
    # Three records in four count; 3 updates of 8 fragments of 8 records.
    assert (read_json(paths.status) or {})["steps"] == 3 * 8 * 6


@pytest.mark.parametrize("kind", ["server", "inline", "trainer"])
def test_where_the_network_runs_changes_no_counter(kind: str, tmp_path: Path) -> None:
    actors = {"ranks": 2, "ring": 1, "environments": 4, "inference": {"kind": kind}}
    paths, attempt = train(tmp_path, settings(CATCH, actors=actors, **FULL))
    assert outcome(attempt)["state"] == "finished"
    assert (read_json(paths.status) or {})["roles"]["policy_server"]["steps_inferred"] >= 3 * 8 * 8


def _policy(minibatches: int = 2) -> dict[str, Any]:
    return {
        "network": {"kind": "mlp", "hidden": [8]},
        "algorithm": {"kind": "ppo", "minibatches": minibatches},
        "batch": {"fragments": 8, "fragment_steps": 8},
    }


def test_two_policies_are_both_trained(tmp_path: Path, updates: list[Mapping[str, Any]]) -> None:
    job = settings({"factory": "tests.scripted", "steps": [[5]], "agents": ["a", "b"]}, **FULL)
    job |= {
        "policies": {"left": _policy(), "right": _policy()},
        "agents": [{"match": "a", "policy": "left"}, {"match": "b", "policy": "right"}],
    }
    paths, _ = train(tmp_path, job)
    assert {update["policy"] for update in updates} == {"left", "right"}
    assert set(tree_of(paths, 3)["policies"]) == {"left", "right"}


def test_run_of_two_policies_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    job = settings({"factory": "tests.scripted", "steps": [[5]], "agents": ["a", "b"]}, **FULL)
    job |= {
        "policies": {"left": _policy(), "right": _policy()},
        "agents": [{"match": "a", "policy": "left"}, {"match": "b", "policy": "right"}],
    }
    paths, _ = train(tmp_path, job)
    job |= {"stop": {"updates": 6}}
    change_job(paths, job)
    resumed, _ = make_attempt(paths, job, checkpoint(paths, 3))
    run_serial(paths, resumed)
    assert outcome(resumed)["state"] == "finished"
    assert tree_of(paths, 6)["meta"]["updates"] == 6


@pytest.mark.parametrize("lengths", [(4, 8), (8, 4), (6, 4), (4, 6)])
def test_policies_with_fragments_of_different_lengths_are_trained_to_the_end(
    tmp_path: Path, updates: list[Mapping[str, Any]], lengths: tuple[int, int]
) -> None:
    job = settings({"factory": "tests.scripted", "steps": [[5]], "agents": ["a", "b"]}, stop={"updates": 12})
    job["actors"] |= {"ring": 4}
    job |= {"agents": [{"match": "a", "policy": "left"}, {"match": "b", "policy": "right"}]}
    batches = [{"batch": {"fragments": 8, "fragment_steps": steps}} for steps in lengths]
    job |= {"policies": {name: _policy() | batch for name, batch in zip(("left", "right"), batches, strict=True)}}
    _, attempt = train(tmp_path, job)
    assert outcome(attempt)["reason"] == "updates"
    assert {update["policy"] for update in updates} == {"left", "right"}
    assert all(update["dropped_fragments"] == 0 for update in updates)
    assert max(update["lag"][2] for update in updates) == (1 if 6 in lengths else 0)


def test_opponent_that_is_not_trained_keeps_its_parameters(tmp_path: Path, updates: list[Mapping[str, Any]]) -> None:
    job = settings({"factory": "tests.scripted", "steps": [[5]], "agents": ["a", "b"]}, **FULL)
    job |= {
        "policies": {"left": _policy(), "right": _policy()},
        "agents": [{"match": "a", "policy": "left"}, {"match": "b", "policy": "right", "train": False}],
    }
    paths, _ = train(tmp_path, job)
    assert {update["policy"] for update in updates} == {"left"}
    assert set(tree_of(paths, 3)["policies"]) == {"left"}


@pytest.mark.parametrize(
    "environment", [CATCH, {"factory": "tests.drawing_environment", "saves": True}], ids=lambda each: each["factory"]
)
def test_evaluator_plays_beside_training_and_changes_nothing_of_it(tmp_path: Path, environment: dict[str, Any]) -> None:
    job = settings(environment, **FULL)
    alone, _ = train(tmp_path, job, "alone")
    watched, attempt = train(tmp_path, job | {"evaluators": {"ranks": 1, "episodes": 5, "every_updates": 1}}, "watched")
    status = read_json(watched.status) or {}
    assert status["roles"]["evaluator"]["rounds"] >= 1
    one, other = tree_of(alone, 3), tree_of(watched, 3)
    assert differences(one["policies"], other["policies"]) == []


def test_stop_in_the_mailbox_interrupts_after_an_update_and_writes_a_checkpoint(tmp_path: Path) -> None:
    job = settings(CATCH, stop={"updates": 100_000})
    paths = make_run(tmp_path, job)
    attempt, _ = make_attempt(paths, job)
    attempt.stop.touch()
    run_serial(paths, attempt)
    assert outcome(attempt)["state"] == "interrupted"
    updates = (read_json(paths.status) or {})["updates"]
    assert 1 <= updates < 100_000
    assert tree_of(paths, updates)["meta"]["updates"] == updates


def test_run_that_stands_still_says_who_waits_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srlhpc.ranks.serial_pause.STANDSTILL_SECONDS", 0.05)
    monkeypatch.setattr(LagLimiter, "grant", lambda *_: False)
    job = settings(CATCH, stop={"updates": 5})
    paths = make_run(tmp_path, job)
    attempt, _ = make_attempt(paths, job)
    with pytest.raises(StandstillError, match="actor-0: group 0 waits for a grant of default"):
        run_serial(paths, attempt)
    assert "run_serial" in attempt.stacks.read_text()


def test_run_goes_on_with_other_groups_by_new_episodes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = settings(CATCH, **FULL)
    paths, _ = train(tmp_path, job)
    job |= {"stop": {"updates": 5}, "actors": {"ranks": 2, "ring": 1, "environments": 8}}
    change_job(paths, job)
    resumed, _ = make_attempt(paths, job, checkpoint(paths, 3))
    run_serial(paths, resumed)
    assert "it starts new episodes" in caplog.text
    assert outcome(resumed)["state"] == "finished"
    assert tree_of(paths, 5)["policies"]["default"]["counters"]["updates"] == 5


def test_error_in_an_environment_names_it_with_rank_and_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from envs.catch import Catch

    def broken(catch: Catch, actions: Mapping[str, Any]) -> Any:
        raise ValueError("the ball is gone")

    monkeypatch.setattr(Catch, "step", broken)
    with pytest.raises(StepError, match=r"catch on rank 0 \(actor-0\), group 0, step 1: ValueError: the ball is gone"):
        train(tmp_path, settings(CATCH, **FULL))
