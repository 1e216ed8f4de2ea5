"""A job whose files do not fit the disk waits, says so, and tries again within its time."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.launch.signals import JobSignals
from srlhpc.launch.slurm_foreman import SlurmForeman
from srlhpc.launch.waiting_for_room import EndedFirst, WaitingForRoom
from srlhpc.runs.lease import read_lease
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine
from srlhpc.slurm.allocation import Allocation
from srlhpc.specs.cluster import ClusterProfile
from tests.failing_disk import FailingDisk


class Waiting:
    """Something that needs room, which comes after some tries, if at all."""

    def __init__(self, folder: Path, room_after: float, number: int = errno.ENOSPC) -> None:
        self.tries, self.slept = 0, 0.0
        self.signals, self.said = JobSignals(), io.StringIO()
        self._room_after, self._number = room_after, number
        self.room = WaitingForRoom(folder, self.signals, ProgressLine(self.said), sleep=self._sleep)
        self.then: Callable[[], None] = lambda: None

    def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.then()

    def write(self) -> str:
        self.tries += 1
        if self.tries <= self._room_after:
            raise OSError(self._number, "No space left on device")
        return "written"


def test_job_waits_until_there_is_room_and_says_so_once_a_minute(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, room_after=24)
    assert waiting.room(waiting.write) == "written"
    assert waiting.slept == 120.0
    lines = waiting.said.getvalue().splitlines()
    assert len(lines) == 2
    assert "the job waits for room: the disk is full (No space left on device): " in lines[0]
    assert f"free in {tmp_path}" in lines[0]


def test_announced_end_ends_the_wait(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, room_after=float("inf"))

    def warn() -> None:
        waiting.signals.announced_at = 1.0

    waiting.then = warn
    with pytest.raises(EndedFirst):
        waiting.room(waiting.write)
    assert waiting.tries == 2


def test_other_errors_are_not_waited_for(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, room_after=1, number=errno.EACCES)
    with pytest.raises(PermissionError):
        waiting.room(waiting.write)


def test_incarnation_that_finds_no_room_for_its_lease_waits_and_then_works(
    tmp_path: Path, failing_disk: FailingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = RunPaths(tmp_path)
    cluster = ClusterProfile().model_dump(mode="json")
    write_json(paths.slurm, {"cluster": cluster, "jobs": [], "allocation": Allocation((), 10).to_json()})
    shift = SlurmForeman(paths, "7", JobSignals())
    monkeypatch.setattr("time.sleep", lambda _: failing_disk.heal())
    monkeypatch.setattr(shift, "_work_alone", lambda: read_lease(paths.lease))
    failing_disk.fill()
    holder: Any = shift.work()
    assert holder.job == "7"
