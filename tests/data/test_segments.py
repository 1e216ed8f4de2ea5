"""Files of blocks that replay keeps."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from srlhpc.data import full_disk
from srlhpc.data.full_disk import ROOM_BYTES
from srlhpc.data.segments import (
    Run,
    Segment,
    append,
    begin_segment,
    number_of,
    read_runs,
    require_length,
    segments_from_tree,
    segments_to_tree,
    verify,
)
from srlhpc.errors import UserError


def run(first: int, count: int) -> Run:
    numbers = np.arange(first, first + count)
    return Run(first, numbers % 3, numbers // 3, {"x": np.repeat(numbers, 8).reshape(count, 2, 4), "y": numbers > 4})


def written(folder: Path, *counts: int, first: int = 5) -> Segment:
    segment = begin_segment(folder / "replay", "replay-a-0", first)
    for count in counts:
        segment = append(folder / "replay", segment, run(segment.end, count))
    return segment


def numbers(folder: Path, segment: Segment) -> list[int]:
    return [int(block[0, 0]) for found in read_runs(folder / "replay", segment) for block in found.fields["x"]]


def test_blocks_come_back_as_they_were(tmp_path: Path) -> None:
    segment = written(tmp_path, 3, 2)
    assert (segment.first, segment.count, segment.end) == (5, 5, 10)
    found = list(read_runs(tmp_path / "replay", segment))
    assert [each.first for each in found] == [5, 8]
    for each, expected in zip(found, (run(5, 3), run(8, 2)), strict=True):
        np.testing.assert_array_equal(each.group, expected.group)
        np.testing.assert_array_equal(each.sequence, expected.sequence)
        assert each.fields.keys() == expected.fields.keys()
        for name, array in expected.fields.items():
            assert each.fields[name].dtype == array.dtype
            np.testing.assert_array_equal(each.fields[name], array)


def test_what_was_added_later_does_not_matter(tmp_path: Path) -> None:
    before = written(tmp_path, 3)
    longer = append(tmp_path / "replay", before, run(8, 2))
    assert longer.size == (tmp_path / "replay" / longer.name).stat().st_size
    assert numbers(tmp_path, before) == [5, 6, 7]
    assert numbers(tmp_path, longer) == [5, 6, 7, 8, 9]


def test_rest_of_a_write_that_was_cut_off_is_written_over(tmp_path: Path) -> None:
    segment = written(tmp_path, 3)
    with open(tmp_path / "replay" / segment.name, "ab") as file:
        file.write(b"?" * 1000)
    assert numbers(tmp_path, segment) == [5, 6, 7]
    assert numbers(tmp_path, append(tmp_path / "replay", segment, run(8, 1))) == [5, 6, 7, 8]


def test_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = written(tmp_path, 3)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            append(tmp_path / "replay", segment, run(8, 2))
    assert (tmp_path / "replay" / segment.name).stat().st_size == segment.size
    assert numbers(tmp_path, append(tmp_path / "replay", segment, run(8, 2))) == [5, 6, 7, 8, 9]


def test_last_room_of_a_disk_is_left_to_a_runs_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment, free = written(tmp_path, 2), ROOM_BYTES
    monkeypatch.setattr(full_disk, "free_bytes", lambda folder: free)
    before = (tmp_path / "replay" / segment.name).read_bytes()
    with pytest.raises(OSError, match="No space left"):
        append(tmp_path / "replay", segment, run(segment.end, 1))
    assert (tmp_path / "replay" / segment.name).read_bytes() == before
    free += 1 << 12
    assert append(tmp_path / "replay", segment, run(segment.end, 1)).count == 3


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    segment = written(tmp_path, 1, 1)
    path = tmp_path / "replay" / segment.name
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(UserError, match=r"is damaged|is cut off"):
            verify(tmp_path / "replay", segment)
    path.write_bytes(whole)
    verify(tmp_path / "replay", segment)


def test_every_file_that_is_cut_off_is_found(tmp_path: Path) -> None:
    segment = written(tmp_path, 1, 1)
    path = tmp_path / "replay" / segment.name
    whole = path.read_bytes()
    for size in (0, 10, 64, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        for check in (verify, require_length):
            with pytest.raises(UserError, match="is cut off"):
                check(tmp_path / "replay", segment)


def test_file_that_is_missing_is_named(tmp_path: Path) -> None:
    segment = written(tmp_path, 1)
    (tmp_path / "replay" / segment.name).unlink()
    for check in (verify, require_length):
        with pytest.raises(UserError, match=f"{segment.name}: is missing"):
            check(tmp_path / "replay", segment)


def test_blocks_of_another_file_are_not_taken_for_the_named_ones(tmp_path: Path) -> None:
    one, other = written(tmp_path, 2), written(tmp_path, 2, first=15)
    os.replace(tmp_path / "replay" / other.name, tmp_path / "replay" / one.name)
    with pytest.raises(UserError, match="is damaged"):
        verify(tmp_path / "replay", one)


def test_numbers_of_files_grow_over_all_that_are_there(tmp_path: Path) -> None:
    first, second = written(tmp_path, 1), written(tmp_path, 1)
    assert [number_of(Path(each.name), "replay-a-0") for each in (first, second)] == [1, 2]
    (tmp_path / "replay" / first.name).unlink()
    assert number_of(Path(written(tmp_path, 1).name), "replay-a-0") == 3
    assert number_of(Path(begin_segment(tmp_path / "replay", "replay-a", 0).name), "replay-a") == 1


def test_folder_of_a_run_that_was_removed_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        begin_segment(tmp_path / "gone" / "replay", "replay-a-0", 0)


def test_order_of_segments_survives_a_checkpoint() -> None:
    segments = [Segment(f"s{place}", place, 1, 7, "ab") for place in range(12)]
    tree = segments_to_tree(segments)
    assert segments_from_tree({name: tree[name] for name in sorted(tree, reverse=True)}) == segments
