"""Files that are whole or not there: data/atomic.py."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from srlhpc.data.atomic import naming, write_atomically, written_aside


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


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is a device or a pipe, which a file must not replace"):
        write_atomically(tmp_path / "pipe", b"")
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_that_is_written_bit_by_bit_takes_its_place_at_the_end_of_the_body(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with written_aside(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "of somebody else")])
def test_an_error_of_the_body_leaves_the_old_file_and_stays_as_it_is(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with written_aside(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(type(error)) as raised:
        interrupted()
    assert raised.value is error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("full_disk")
def test_what_fits_the_disk_no_more_at_the_end_of_the_body_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(OSError, match="File too large") as failed, written_aside(path) as file:
        file.write(b"much longer than ten bytes, and not yet flushed")
    assert failed.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_an_error_without_a_number_keeps_its_words(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="^words$"), naming(tmp_path / "file"):
        raise OSError("words")
