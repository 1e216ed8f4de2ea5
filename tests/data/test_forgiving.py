"""A shared file system that fails a look is forgiven for a stated time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from srlhpc.data.forgiving import FORGIVEN_SECONDS, FileSystemLostError, Forgiving, matching, patiently
from tests.failing_disk import FailingDisk


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.ETIMEDOUT, errno.ENOTCONN, errno.EAGAIN])
def test_look_that_fails_in_passing_sees_nothing_and_the_next_one_what_is_there(
    tmp_path: Path, failing_disk: FailingDisk, number: int
) -> None:
    letter = tmp_path / "stop"
    letter.touch()
    looks = Forgiving()
    failing_disk.fail("stop", number)
    failing_disk.fail(tmp_path.name, number)
    assert not looks.exists(letter)
    assert looks.names(tmp_path) == set()
    assert looks.text(letter) is None
    failing_disk.heal()
    assert looks.exists(letter)
    assert looks.names(tmp_path) == {"stop"}
    assert looks.text(letter) == ""


def test_look_that_fails_for_too_long_is_the_end_and_names_the_path(tmp_path: Path, failing_disk: FailingDisk) -> None:
    clock = Clock()
    looks = Forgiving(clock=clock)
    failing_disk.fail("stop", errno.ESTALE)
    looks.exists(tmp_path / "stop")
    clock.now += FORGIVEN_SECONDS - 1
    looks.exists(tmp_path / "stop")
    clock.now += 1
    with pytest.raises(FileSystemLostError, match=r"stop: the file system has failed for 120 s on .*Stale file handle"):
        looks.exists(tmp_path / "stop")


def test_success_between_two_failures_starts_the_time_anew(tmp_path: Path, failing_disk: FailingDisk) -> None:
    clock = Clock()
    looks = Forgiving(clock=clock)
    for _ in range(3):
        failing_disk.fail("stop", errno.EIO)
        looks.exists(tmp_path / "stop")
        clock.now += FORGIVEN_SECONDS - 1
        failing_disk.heal()
        looks.exists(tmp_path / "stop")
        clock.now += 1


def test_two_failures_between_which_nobody_looked_are_not_one_that_lasts(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    clock = Clock()
    looks = Forgiving(clock=clock)
    failing_disk.fail("stop", errno.EIO)
    for _ in range(3):
        looks.exists(tmp_path / "stop")
        clock.now += 10 * FORGIVEN_SECONDS
    looks.exists(tmp_path / "stop")
    clock.now += FORGIVEN_SECONDS - 1
    looks.exists(tmp_path / "stop")
    clock.now += 1
    with pytest.raises(FileSystemLostError):
        looks.exists(tmp_path / "stop")


def test_looks_that_take_long_until_they_fail_are_one_failure(tmp_path: Path) -> None:
    clock = Clock()
    looks = Forgiving(clock=clock)

    def slow() -> bool:
        clock.now += 2 * FORGIVEN_SECONDS
        raise OSError(errno.ETIMEDOUT, "away")

    assert not looks.look(tmp_path, slow, False)
    with pytest.raises(FileSystemLostError):
        looks.look(tmp_path, slow, False)


def test_folder_that_may_not_be_read_is_not_forgiven(tmp_path: Path, failing_disk: FailingDisk) -> None:
    failing_disk.fail(tmp_path.name, errno.EACCES)
    with pytest.raises(PermissionError):
        Forgiving().names(tmp_path)


def test_what_must_be_known_now_is_tried_again_until_patience_ends(tmp_path: Path, failing_disk: FailingDisk) -> None:
    clock = Clock()
    (tmp_path / "file").write_text("content")
    failing_disk.fail("file", errno.EIO, times=3)
    read = (tmp_path / "file").read_text
    assert patiently(tmp_path / "file", read, clock=clock, sleep=clock.sleep) == "content"
    failing_disk.fail("file", errno.EIO)
    before = clock.now
    with pytest.raises(FileSystemLostError, match="Input/output error"):
        patiently(tmp_path / "file", read, clock=clock, sleep=clock.sleep)
    assert clock.now - before == FORGIVEN_SECONDS
    with pytest.raises(FileNotFoundError):
        patiently(tmp_path / "none", (tmp_path / "none").read_text)


def test_files_by_a_pattern_are_sorted_and_of_a_missing_folder_none(tmp_path: Path) -> None:
    for name in ("b.h5", "a.h5", "c.txt"):
        (tmp_path / name).touch()
    assert matching(tmp_path, "*.h5") == [tmp_path / "a.h5", tmp_path / "b.h5"]
    assert matching(tmp_path / "none", "*") == []
    assert os.listdir(tmp_path)
