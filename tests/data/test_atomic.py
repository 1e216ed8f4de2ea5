"""Files that are whole or not there: data/atomic.py."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from srlhpc.data.atomic import write_atomically


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file gets longer than ten bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("full_disk")
def test_a_failed_write_names_the_file_and_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(OSError, match="File too large") as failed:
        write_atomically(path, b"much longer")
    assert failed.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_gone_is_told_by_the_name_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as failed:
        write_atomically(tmp_path / "gone" / "file", b"")
    assert failed.value.filename == str(tmp_path / "gone" / "file")


def test_a_name_that_is_a_folder_is_told_without_the_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "taken" / "by").mkdir(parents=True)
    with pytest.raises(OSError, match=f"'{tmp_path / 'taken'}'$"):
        write_atomically(tmp_path / "taken", b"")
