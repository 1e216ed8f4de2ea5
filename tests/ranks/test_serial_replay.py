"""Replay of serial runs lies in files beside their checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.segment_folder import segments_of
from srlhpc.errors import UserError
from srlhpc.plan.layouts import window_shape
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.checkpoints import checkpoint_folder
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.replay_checkpoint import check_files
from tests.failing_disk import FailingDisk
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, tree_of
from tests.launch.test_exact_resume import differences
from tests.rules.test_replayed_q import job

LABEL = "replay-default-0"


@pytest.fixture
def trained(tmp_path: Path) -> RunPaths:
    """Checkpoints at 20, 40 and 60 updates."""
    paths = make_run(tmp_path, job(60, every=20))
    run_serial(paths, make_attempt(paths, job(60, every=20))[0])
    return paths


def files(paths: RunPaths, updates: int) -> set[str]:
    part = read_checkpoint(checkpoint(paths, updates))["replay"][LABEL]
    return {segment.name for segment in segments_of(part)}


def test_only_files_that_a_checkpoint_names_are_there(trained: RunPaths) -> None:
    named = [files(trained, updates) for updates in (20, 40, 60)]
    assert {path.name for path in trained.replay.iterdir()} == set().union(*named)
    assert not named[0] <= named[2]
    assert "fields" not in read_checkpoint(checkpoint(trained, 60))["replay"][LABEL]["store"]


def test_checkpoint_whose_files_are_missing_or_cut_off_is_not_used(trained: RunPaths) -> None:
    def newest() -> Any:
        return checkpoint_folder(trained).newest_valid(lambda tree: check_files(tree, trained.replay))

    assert newest().path == checkpoint(trained, 60)
    (trained.replay / max(files(trained, 60) - files(trained, 40))).unlink()
    found = newest()
    assert found.path == checkpoint(trained, 40)
    assert found.problems[0].startswith(f"{checkpoint(trained, 60)}: ")
    assert "is missing" in found.problems[0]
    cut = trained.replay / max(files(trained, 40) - files(trained, 20))
    cut.write_bytes(cut.read_bytes()[:100])
    assert newest().path == checkpoint(trained, 20)
    for path in trained.replay.iterdir():
        path.unlink()
    with pytest.raises(UserError, match="of 3 checkpoints none can be used"):
        newest()


def test_run_that_goes_on_from_an_older_checkpoint_has_the_same_bits(trained: RunPaths, tmp_path: Path) -> None:
    undisturbed = tree_of(trained, 60)
    for updates in (60, 40):
        checkpoint(trained, updates).unlink()
    run_serial(trained, make_attempt(trained, job(60, every=20), checkpoint(trained, 20))[0])
    assert differences(undisturbed, tree_of(trained, 60)) == []


def test_run_of_other_batches_goes_on_with_the_blocks_and_new_episodes(
    trained: RunPaths, caplog: pytest.LogCaptureFixture
) -> None:
    other = job(65, every=20)
    other["policies"]["default"]["batch"]["fragments"] = 16
    change_job(trained, other)
    attempt, _ = make_attempt(trained, other, checkpoint(trained, 60))
    run_serial(trained, attempt)
    assert outcome(attempt)["reason"] == "updates"
    assert "it starts new episodes" in caplog.text
    status = read_json(trained.status) or {}
    counters = status["roles"]["replay"]
    assert (counters["refills"], counters["blocks"]) == (0.0, counters["slots"])
    assert status["warnings"] == []


def test_store_of_another_layout_starts_empty_and_says_so(trained: RunPaths) -> None:
    other = job(65, every=20)
    other["policies"]["default"]["replay"]["block_steps"] = 4
    change_job(trained, other)
    attempt, _ = make_attempt(trained, other, checkpoint(trained, 60))
    run_serial(trained, attempt)
    status = read_json(trained.status) or {}
    assert status["roles"]["replay"]["refills"] == 1.0
    (warning,) = status["warnings"]
    assert warning.startswith("replay of policy default starts empty: its blocks have another layout")
    assert warning.endswith(
        "training goes on when 100 steps came in, and until then the checkpoint stays as it is, with what it holds of "
        "replay"
    )


@pytest.mark.parametrize("steps", [(1, 9), (9, 1)])
def test_run_of_other_sums_of_rewards_draws_every_window_once(tmp_path: Path, steps: tuple[int, int]) -> None:
    def dqn(updates: int, n_steps: int) -> dict[str, Any]:
        made = job(updates, every=20)
        made["policies"]["default"] |= {"network": {"kind": "mlp"}, "algorithm": {"kind": "dqn", "n_steps": n_steps}}
        return made

    before, after = steps
    paths = make_run(tmp_path, dqn(40, before))
    run_serial(paths, make_attempt(paths, dqn(40, before))[0])
    change_job(paths, dqn(60, after))
    attempt, plan = make_attempt(paths, dqn(60, after), checkpoint(paths, 40))

    run_serial(paths, attempt)

    part = read_checkpoint(checkpoint(paths, 60))["replay"][LABEL]
    assert part["store"]["window"].tolist() == [0, window_shape(plan, "default").fragment_steps, after - 1, 1]
    items = part["store"]["draws"]["items"]
    assert len(items) == len(set(items.tolist()))


def test_disk_that_is_full_for_blocks_ends_nothing_and_the_next_checkpoint_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = make_run(tmp_path, job(40, every=20), "whole")
    run_serial(whole, make_attempt(whole, job(40, every=20))[0])
    paths, disk = make_run(tmp_path, job(40, every=20)), FailingDisk(monkeypatch)
    attempt, _ = make_attempt(paths, job(40, every=20))

    def room() -> bool:
        return "checkpoint at update 20 could not be written" in caplog.text

    disk.fill(lambda path: path.startswith(str(paths.replay)) and not room())
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "updates"
    assert not checkpoint(paths, 20).exists()
    assert differences(tree_of(whole, 40), tree_of(paths, 40)) == []
