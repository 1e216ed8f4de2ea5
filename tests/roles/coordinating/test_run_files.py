"""Status and metrics are written beside the loop, survive a full disk, and bring no removed run back."""

from __future__ import annotations

import errno
import json
import shutil
import threading
from pathlib import Path

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.data.full_disk import Reserve
from srlhpc.roles.coordinating.coordinator import StepLostError
from srlhpc.roles.coordinating.run_files import RunFiles, append, cut_metrics
from tests.failing_disk import FailingDisk
from tests.roles.coordinating.coordinator_setup import TRAINER, Coordinating


def run_files(folder: Path, *, in_thread: bool = False) -> RunFiles:
    attempt = folder / "attempts" / "0001"
    attempt.mkdir(parents=True)
    reserve = Reserve(folder / ".reserve")
    return RunFiles(folder / "status.json", folder / "metrics.jsonl", reserve, attempt, in_thread=in_thread)


def lines(folder: Path) -> list[int]:
    return [json.loads(line)["steps"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def go_on(run: Coordinating) -> None:
    for _ in range(20):
        run.wait(1)
        run.report(TRAINER)


def test_slow_file_system_stalls_nobody_and_the_newest_status_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = run_files(tmp_path, in_thread=True)
    is_slow, may_go_on, written = threading.Event(), threading.Event(), []

    def slow(path: Path, content: dict[str, int], **_: object) -> None:
        is_slow.set()
        assert may_go_on.wait(30)
        written.append(content["n"])

    monkeypatch.setattr("srlhpc.data.full_disk.write_json", slow)
    files.write({"n": 0}, {"steps": 0})
    assert is_slow.wait(30)
    for number in range(1, 50):
        files.write({"n": number}, {"steps": number})
    may_go_on.set()
    files.flush()
    assert written == [0, 49]
    assert lines(tmp_path) == list(range(50))
    files.close()


def test_lines_of_metrics_wait_for_room(tmp_path: Path, failing_disk: FailingDisk) -> None:
    files = run_files(tmp_path)
    files.write({}, {"steps": 1})
    failing_disk.fill()
    files.write({}, {"steps": 2})
    files.write({}, {"steps": 3})
    assert files.problem is not None
    assert files.problem.startswith("status and metrics cannot be written: the disk is full")
    failing_disk.heal()
    files.write({}, None)
    assert lines(tmp_path) == [1, 2, 3]
    assert files.problem is None


def test_half_a_line_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    append(path, b"first\n")
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signals = pytest.importorskip("signal")
    before = signals.signal(signals.SIGXFSZ, signals.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            append(path, b"second\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signals.signal(signals.SIGXFSZ, before)
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == b"first\n"


def test_outcome_is_written_in_the_reserves_room(tmp_path: Path, failing_disk: FailingDisk) -> None:
    run = Coordinating(tmp_path, {"updates": 3})
    reserve = tmp_path / ".reserve"
    failing_disk.fill(lambda path: ".reserve" in path or (reserve.exists() and "checkpoints" not in path))
    assert run.update(3).stop
    run.end()
    assert run.outcome["state"] == "finished"
    assert run.status["state"] == "finished"


def test_bug_in_the_writing_thread_is_not_swallowed(tmp_path: Path) -> None:
    files = run_files(tmp_path, in_thread=True)
    files.write({"status": object()})
    files.join()
    with pytest.raises(TypeError, match="not JSON serializable"):
        files.write({})


def test_removed_run_folder_ends_the_run_and_stays_removed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    run = Coordinating(folder, checkpoint_seconds=10.0)
    run.update(3)
    shutil.rmtree(folder)
    with pytest.raises(StepLostError, match="the run's folder is gone"):
        go_on(run)
    assert list(tmp_path.iterdir()) == []


def test_run_folder_that_another_run_has_taken_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    run = Coordinating(folder)
    run.update(3)
    folder.rename(tmp_path / "old")
    folder.mkdir()
    with pytest.raises(StepLostError, match="the run's folder is gone"):
        go_on(run)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("is_another", [False, True])
def test_folder_with_a_new_number_is_another_one_only_if_it_is_described_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_another: bool
) -> None:
    attempt = tmp_path / "0001"
    attempt.mkdir()
    description = attempt / "attempt.json"
    description.write_text("of one")
    reserve = Reserve(tmp_path / ".reserve")
    files = RunFiles(
        tmp_path / "status.json", tmp_path / "metrics.jsonl", reserve, attempt, description, in_thread=False
    )
    monkeypatch.setattr("srlhpc.roles.coordinating.run_files._identity", lambda _: -1)
    if is_another:
        description.write_text("of another")
    for number in range(5):
        files.write({"n": number}, {"steps": number})
    assert files.is_removed == is_another
    assert (tmp_path / "status.json").exists() != is_another
    assert (tmp_path / "metrics.jsonl").exists() != is_another


def test_metrics_are_cut_on_a_full_disk(tmp_path: Path, failing_disk: FailingDisk) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"steps": steps}) + "\n" for steps in range(5)) + '{"ste')
    failing_disk.fill()
    cut_metrics(path, 2)
    failing_disk.heal()
    assert lines(tmp_path) == [0, 1, 2]
    path.write_text('{"steps": 1}\nbroken\n{"steps": 2}\n{"steps": 9}\n')
    cut_metrics(path, 2)
    assert lines(tmp_path) == [1, 2]
    assert read_json(path) is None


def test_one_failed_look_at_the_mailbox_ends_nothing(tmp_path: Path, failing_disk: FailingDisk) -> None:
    run = Coordinating(tmp_path)
    run.update(5)
    for name in ("stop", "checkpoint", "exits", "failures"):
        failing_disk.fail(name, errno.ESTALE)
    run.wait(1)
    (tmp_path / "control" / "stop").symlink_to(tmp_path)
    failing_disk.heal()
    run.wait(1)
    assert run.report(TRAINER).stop


def test_metrics_after_the_checkpoint_are_cut_when_a_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"steps": 10}\n{"steps": 20}\n{"steps": 30}\n{"ste')
    cut_metrics(path, 20)
    assert path.read_text() == '{"steps": 10}\n{"steps": 20}\n'


def test_cutting_metrics_that_are_not_there_makes_no_file(tmp_path: Path) -> None:
    cut_metrics(tmp_path / "metrics.jsonl", 20)
    assert list(tmp_path.iterdir()) == []
