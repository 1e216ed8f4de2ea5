"""The files of blocks beside a run's checkpoints: those that no checkpoint needs any more are removed."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.segments import ENDING, Run, Segment, number_of, read_runs, segments_from_tree
from srlhpc.errors import ClusterError, UserError

REPLAY = "replay"
"""Name of the parts of replay in a checkpoint, by label of their role."""


def segments_of(part: Mapping[str, Any]) -> list[Segment]:
    """The files that a shard's part of a checkpoint names."""
    # Parts that come from another rank lack what is empty (data/tree.py).
    return segments_from_tree(part.get("segments", {}))


def runs_of(part: Mapping[str, Any], folder: Path) -> Iterator[Run]:
    """The blocks in those files.

    Raises:
        FileSystemLostError, UserError: as `read_runs`.
    """
    return (run for segment in segments_of(part) for run in read_runs(folder, segment))


def named_files(tree: Mapping[str, Any]) -> frozenset[str]:
    """Names of the files that a checkpoint needs."""
    return frozenset(segment.name for part in tree.get(REPLAY, {}).values() for segment in segments_of(part))


class SegmentFolder:
    """Keeps the folder of one run in order; for whoever writes its checkpoints.

    Args:
        path: the folder; it may be missing.
        writers: labels of the roles that write there now.
    """

    def __init__(self, path: Path, writers: Collection[str]) -> None:
        self._path, self._writers = path, writers
        self._named: dict[Path, frozenset[str]] = {}

    def tidy(self, checkpoints: Sequence[Path], newest: Path, tree: Mapping[str, Any]) -> None:
        """Removes files that no checkpoint names and nobody writes.

        Args:
            checkpoints: all files that are kept.
            newest: the one that was written now.
            tree: what is in it.
        """
        with contextlib.suppress(OSError):
            found = [path for path in self._path.iterdir() if path.name.endswith(ENDING)]
            if not found:
                return
            self._named = {path: self._named[path] for path in checkpoints if path in self._named}
            self._named[newest] = named_files(tree)
            needed = frozenset[str]().union(*map(self._names_of, checkpoints), self._named[newest])
            for path in found:
                if path.name not in needed and not self._may_be_written(path, tree):
                    with contextlib.suppress(OSError):
                        path.unlink()

    def _names_of(self, checkpoint: Path) -> frozenset[str]:
        if checkpoint not in self._named:
            try:
                self._named[checkpoint] = named_files(read_checkpoint(checkpoint))
            # Nobody can resume from it.
            except UserError:
                self._named[checkpoint] = frozenset()
            except ClusterError as error:
                raise OSError(str(error)) from None
        return self._named[checkpoint]

    def _may_be_written(self, path: Path, tree: Mapping[str, Any]) -> bool:
        """Whether a role that writes has not handed its file over yet: numbers only grow."""
        for label in self._writers:
            number = number_of(path, label)
            if number is not None:
                return number >= max(self._numbers(label, tree), default=0)
        return False

    @staticmethod
    def _numbers(label: str, tree: Mapping[str, Any]) -> Iterator[int]:
        """Numbers of a role's files in the newest checkpoint."""
        for segment in segments_of(tree.get(REPLAY, {}).get(label, {})):
            number = number_of(Path(segment.name), label)
            if number is not None:
                yield number
