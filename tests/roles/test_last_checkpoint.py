"""A last checkpoint that cannot be written: tried again while there is time, and then the run has failed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.roles.coordinating.checkpointing import RETRY_SECONDS
from srlhpc.specs.patience import LAST_CHECKPOINT_SECONDS
from tests.failing_disk import FailingDisk
from tests.roles.coordinating.coordinator_setup import TRAINER, Coordinating


def end_on_full_disk(run: Coordinating, disk: FailingDisk) -> None:
    """The run is told to end, its trainer sends its part, and no checkpoint can be written."""
    disk.fill(lambda path: "checkpoints" in path)
    assert run.report(TRAINER).stop
    run.send_part(run.ranks[TRAINER].command.checkpoint, run.progress.updates)


def pass_time(run: Coordinating, seconds: float) -> None:
    """Second by second, with the reports of all who live."""
    for _ in range(int(seconds)):
        run.wait(1)
        run.all_report()


def leave(run: Coordinating) -> None:
    for _ in range(2):
        run.all_report(done=True)
    assert run.coordinator.is_done


@pytest.mark.parametrize(
    ("stop", "cause"),
    [
        ({"updates": 3}, "3 updates"),
        ({"steps": 30}, "30 steps trained"),
        ({"return_mean": 2.0}, "mean return 2 reached 2"),
        ({"hours": 0.01}, "0.01 hours of training"),
        ({}, "stopped on request"),
    ],
)
def test_end_without_its_last_checkpoint_has_failed_whatever_ended_the_run(
    tmp_path: Path, failing_disk: FailingDisk, stop: dict[str, float], cause: str
) -> None:
    run = Coordinating(tmp_path, stop)
    run.update(3)
    run.episodes(100, 2.0)
    if not stop:
        (tmp_path / "control" / "stop").touch()
    pass_time(run, 37)
    end_on_full_disk(run, failing_disk)
    pass_time(run, LAST_CHECKPOINT_SECONDS - 1)
    assert not run.coordinator.is_done
    assert "the disk is full (No space left on device)" in run.status["waits"]
    assert run.status["waits"].endswith("it is tried for 1 s more")
    run.wait(1)
    leave(run)
    assert (run.outcome["state"], run.outcome["reason"]) == ("failed", "checkpoint")
    assert run.outcome["message"].startswith(f"{cause}; but within 60 s the last checkpoint at update 3 could not be")
    assert f"free in {tmp_path}/checkpoints" in run.outcome["message"]


def test_last_checkpoint_is_written_when_there_is_room_again(tmp_path: Path, failing_disk: FailingDisk) -> None:
    run = Coordinating(tmp_path, {"updates": 3})
    run.update(3)
    end_on_full_disk(run, failing_disk)
    for _ in range(3):
        run.wait(RETRY_SECONDS)
        assert run.files() == []
    failing_disk.heal()
    run.wait(RETRY_SECONDS)
    leave(run)
    assert run.files() == ["updates-000000003.h5"]
    assert (run.outcome["state"], run.outcome["reason"]) == ("finished", "updates")
    assert (run.status["waits"], run.status["warnings"]) == (None, [])


def test_ranks_are_answered_while_the_end_waits_for_room(tmp_path: Path, failing_disk: FailingDisk) -> None:
    run = Coordinating(tmp_path, {"updates": 3})
    run.update(3)
    end_on_full_disk(run, failing_disk)
    for _ in range(int(LAST_CHECKPOINT_SECONDS) - 1):
        run.wait(1)
        for rank in (TRAINER, 2, 3):
            command = run.report(rank, done=True)
            assert (command.stop, command.exit) == (True, False)


def test_failing_environment_keeps_its_reason_when_its_checkpoint_cannot_be_written_either(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    run = Coordinating(tmp_path)
    run.update(3)
    (tmp_path / "failures" / "rank-00002.json").write_text('{"kind": "environment", "message": "step 7 raised"}')
    run.wait(1)
    end_on_full_disk(run, failing_disk)
    pass_time(run, LAST_CHECKPOINT_SECONDS)
    leave(run)
    assert (run.outcome["state"], run.outcome["reason"]) == ("failed", "environment")
    assert "step 7 raised; but within 60 s the last checkpoint" in run.outcome["message"]


def test_disk_that_is_full_in_mid_training_is_a_warning_that_names_it(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    run = Coordinating(tmp_path, {"updates": 10}, checkpoint_seconds=10.0)
    run.update(3)
    failing_disk.fill(lambda path: "checkpoints" in path)
    run.wait(11)
    run.send_part(run.report(TRAINER).checkpoint, 3)
    run.wait(1)
    [warning] = run.status["warnings"]
    assert warning.startswith("checkpoint at update 3 could not be written: the disk is full (No space left on device)")
    failing_disk.heal()
    assert run.update(10).stop
    run.end()
    assert run.outcome["state"] == "finished"


def test_checkpoint_that_cannot_be_written_says_whether_there_is_an_older_one(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    run = Coordinating(tmp_path, {"updates": 10}, checkpoint_seconds=10.0)

    def said(updates: int) -> str:
        run.update(updates)
        run.wait(11)
        run.send_part(run.report(TRAINER).checkpoint, updates)
        run.wait(1)
        warnings = run.status["warnings"]
        return warnings[0].rpartition("; ")[2] if warnings else ""

    failing_disk.fill(lambda path: "checkpoints" in path)
    assert said(1) == "there is no older one"
    failing_disk.heal()
    assert said(2) == ""
    failing_disk.fill(lambda path: "checkpoints" in path)
    assert said(3) == "the last good one is kept"
    failing_disk.fail("checkpoints", errno.ESTALE)
    assert said(4) == "whether there is an older one cannot be seen now"


def test_spare_place_takes_the_checkpoint_and_gives_it_up_when_there_is_room(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    (tmp_path / "run").mkdir()
    folder = CheckpointFolder(tmp_path / "run" / "checkpoints", spare=tmp_path / "spare" / "id")
    folder.save({"updates": 1}, 1)
    failing_disk.fill(lambda path: "checkpoints" in path)
    folder.save({"updates": 2}, 2)
    folder.save({"updates": 3}, 3)
    assert folder.detour is not None
    assert "the disk is full" in folder.detour
    assert [path.name for path in (tmp_path / "spare" / "id").iterdir()] == ["updates-000000003.h5"]
    newest = folder.newest_valid()
    assert newest
    assert newest.tree == {"updates": 3}
    failing_disk.heal()
    folder.save({"updates": 4}, 4)
    assert folder.detour is None
    assert [path.name for path in folder.files()] == ["updates-000000001.h5", "updates-000000004.h5"]


def test_spare_place_that_cannot_be_written_either_is_told_by_the_first_error(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoints", spare=tmp_path / "spare")
    failing_disk.fill()
    with pytest.raises(OSError, match="No space left") as caught:
        folder.save({"updates": 2}, 2)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "checkpoints")


def test_run_folder_that_was_removed_is_not_made_anew_by_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        CheckpointFolder(tmp_path / "run" / "checkpoints", spare=tmp_path / "spare").save({}, 1)
    assert list(tmp_path.iterdir()) == []
