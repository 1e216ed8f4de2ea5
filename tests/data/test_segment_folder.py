"""Which files of blocks stay beside checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.checkpoint import write_checkpoint
from srlhpc.data.segment_folder import SegmentFolder, named_files
from srlhpc.data.segments import Segment, segments_to_tree

WRITER, OTHER = "replay-a-0", "replay-a-1"


def name(label: str, number: int) -> str:
    return f"{label}-{number:08d}.blocks"


def naming(**numbers: list[int]) -> dict[str, Any]:
    """A checkpoint that names files of `zero` and `one`, the shards."""
    labels = {"zero": WRITER, "one": OTHER}
    parts = {
        labels[key]: {"segments": segments_to_tree(Segment(name(labels[key], number), 0, 1, 1, "") for number in its)}
        for key, its in numbers.items()
    }
    return {"replay": parts}


class Run:
    def __init__(self, root: Path, *writers: str) -> None:
        self.replay, self._root = root / "replay", root
        self.replay.mkdir()
        self.folder = SegmentFolder(self.replay, writers)
        self._files: list[Path] = []

    def has(self, *files: str) -> None:
        for file in files:
            (self.replay / file).touch()

    def writes(self, updates: int, tree: Mapping[str, Any]) -> None:
        path = self._root / f"updates-{updates:09d}.h5"
        write_checkpoint(path, tree)
        self._files.append(path)
        self.folder.tidy(self._files, path, tree)

    def forgets(self) -> None:
        self._files.pop(0).unlink()

    @property
    def left(self) -> set[str]:
        return {path.name for path in self.replay.iterdir()}


def test_files_stay_as_long_as_a_checkpoint_names_them(tmp_path: Path) -> None:
    run = Run(tmp_path, WRITER)
    run.has(*(name(WRITER, number) for number in (1, 2, 3)))
    run.writes(1, naming(zero=[1, 2]))
    run.writes(2, naming(zero=[2, 3]))
    assert run.left == {name(WRITER, number) for number in (1, 2, 3)}
    run.forgets()
    run.writes(3, naming(zero=[3]))
    assert run.left == {name(WRITER, number) for number in (2, 3)}


def test_files_of_checkpoints_that_were_there_before_stay(tmp_path: Path) -> None:
    run = Run(tmp_path, WRITER)
    run.has(*(name(WRITER, number) for number in (1, 2)))
    run.writes(1, naming(zero=[1]))
    again = SegmentFolder(run.replay, [WRITER])
    newest = tmp_path / "updates-000000002.h5"
    again.tidy([tmp_path / "updates-000000001.h5", newest], newest, naming(zero=[2]))
    assert run.left == {name(WRITER, number) for number in (1, 2)}


def test_file_that_may_be_written_still_is_left(tmp_path: Path) -> None:
    run = Run(tmp_path, WRITER)
    run.has(name(WRITER, 1), name(WRITER, 2), name(WRITER, 3), "notes.txt")
    run.writes(1, naming(zero=[2]))
    assert run.left == {name(WRITER, 2), name(WRITER, 3), "notes.txt"}


def test_checkpoint_without_a_shard_leaves_what_it_writes(tmp_path: Path) -> None:
    run = Run(tmp_path, WRITER, OTHER)
    run.has(name(WRITER, 1), name(OTHER, 1))
    run.writes(1, naming(zero=[1]))
    assert run.left == {name(WRITER, 1), name(OTHER, 1)}


def test_files_of_a_shard_that_is_no_more_go_with_the_last_checkpoint_that_names_them(tmp_path: Path) -> None:
    run = Run(tmp_path, WRITER)
    run.has(name(WRITER, 1), name(OTHER, 1))
    run.writes(1, naming(zero=[1], one=[1]))
    run.writes(2, naming(zero=[1]))
    assert run.left == {name(WRITER, 1), name(OTHER, 1)}
    run.forgets()
    run.writes(3, naming(zero=[1]))
    assert run.left == {name(WRITER, 1)}


def test_checkpoint_that_is_damaged_keeps_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, WRITER)
    run.has(name(WRITER, 1), name(WRITER, 2))
    run.writes(1, naming(zero=[1]))
    (tmp_path / "updates-000000001.h5").write_bytes(b"no checkpoint")
    newest = tmp_path / "updates-000000002.h5"
    SegmentFolder(run.replay, [WRITER]).tidy([tmp_path / "updates-000000001.h5", newest], newest, naming(zero=[2]))
    assert run.left == {name(WRITER, 2)}


def test_run_without_replay_has_nothing_to_keep(tmp_path: Path) -> None:
    SegmentFolder(tmp_path / "replay", []).tidy([], tmp_path / "updates-000000001.h5", {})
    assert not (tmp_path / "replay").exists()


@pytest.mark.parametrize("tree", [{}, {"replay": {}}, {"replay": {WRITER: {"store": 1}}}])
def test_checkpoint_may_name_no_files(tree: dict[str, Any]) -> None:
    assert named_files(tree) == frozenset()
