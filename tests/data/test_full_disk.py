"""Last words fit on a full disk, and what is full is said."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.data.full_disk import RESERVE_BYTES, Reserve, not_written, size_text
from srlhpc.data.mailbox import blank, post, take
from tests.failing_disk import FailingDisk


def test_reserve_gives_its_room_back_when_the_disk_is_full_and_takes_it_again(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    reserve = Reserve(tmp_path / ".reserve")
    reserve.keep()
    assert reserve.path.stat().st_size == RESERVE_BYTES
    failing_disk.fill(lambda path: ".reserve" in path or reserve.path.exists())
    reserve.write_json(tmp_path / "status.json", {"a": 1})
    assert read_json(tmp_path / "status.json") == {"a": 1}
    assert not reserve.path.exists()
    failing_disk.heal()
    reserve.keep()
    assert reserve.path.exists()


def test_reserve_does_not_help_against_other_errors_and_stays(tmp_path: Path, failing_disk: FailingDisk) -> None:
    reserve = Reserve(tmp_path / ".reserve")
    reserve.keep()
    failing_disk.fail("folder", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        reserve.lend(lambda: (tmp_path / "folder").mkdir())
    assert reserve.path.exists()


def test_reserve_makes_no_folder(tmp_path: Path) -> None:
    Reserve(tmp_path / "none" / ".reserve").keep()
    assert not (tmp_path / "none").exists()


def test_letter_is_posted_on_a_full_disk_twice(tmp_path: Path, failing_disk: FailingDisk) -> None:
    letter = tmp_path / "stop"
    blank(letter).touch()
    failing_disk.fill()
    for _ in range(2):
        post(letter)
        assert letter.exists()
        take(letter)
        assert not letter.exists()
    failing_disk.heal()
    blank(letter).unlink()
    post(letter)
    assert letter.exists()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, r"the disk is full \(No space left on device\): .* free in /.*, 3.0 MB needed"),
        (errno.EDQUOT, r"the disk quota is used up \(Disk quota exceeded\): .* free in /"),
        (errno.EFBIG, r"no file may get so large here \(see `ulimit -f`\) \(File too large\)"),
        (errno.EACCES, r"Permission denied: in /"),
    ],
)
def test_what_could_not_be_written_says_which_disk_and_how_much(tmp_path: Path, number: int, words: str) -> None:
    said = not_written(tmp_path, OSError(number, os.strerror(number)), 3 << 20)
    assert re.match(words, said), said


def test_sizes_are_words() -> None:
    assert [size_text(size) for size in (0, 1023, 65536, 3 << 20, 5 << 29)] == [
        "0 bytes",
        "1023 bytes",
        "64 KB",
        "3.0 MB",
        "2.5 GB",
    ]
