"""The checkpoints of one run: which is the newest whole one, and which are kept."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from srlhpc.data.atomic import WRITING
from srlhpc.data.checkpoint import Tree, read_checkpoint, read_score, write_checkpoint
from srlhpc.objects import UserError

_NAME = re.compile(r"updates-(\d+)\.h5")


class Newest(NamedTuple):
    """The newest checkpoint that is whole."""

    path: Path
    tree: dict[str, Any]
    problems: list[str]
    """What is wrong with each newer file."""


class CheckpointFolder:
    """A folder of files `updates-000000123.h5`, written by one process at a time.

    Args:
        path: the folder; made at the first save.
        keep: newest files kept.
        keep_best: files with the best score kept beside those.
    """

    def __init__(self, path: Path, keep: int = 3, keep_best: int = 1) -> None:
        self.path = path
        self._keep = max(1, keep)
        self._keep_best = keep_best

    def files(self) -> list[Path]:
        """All checkpoints, fewest updates first."""
        numbered = [(int(match[1]), path) for path in self.path.glob("updates-*.h5") if (match := _match(path))]
        return [path for _, path in sorted(numbered)]

    def save(self, tree: Tree, updates: int, score: float | None = None) -> Path:
        """Writes one file, then removes the rests of interrupted writes and the files that need not be kept.

        Raises:
            OSError: it could not be written; nothing was removed but rests.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        for rest in self.path.glob(f".updates-*{WRITING}"):
            rest.unlink(missing_ok=True)
        path = self.path / f"updates-{updates:09d}.h5"
        write_checkpoint(path, tree, score)
        self._remove_old(path)
        return path

    def newest_valid(self) -> Newest | None:
        """The newest whole checkpoint and what is wrong with newer ones; None if the folder has no checkpoint.

        Raises:
            UserError: there are checkpoints and none is whole.
        """
        problems: list[str] = []
        for path in reversed(self.files()):
            try:
                return Newest(path, read_checkpoint(path), problems)
            except UserError as error:
                problems.append(str(error))
        if problems:
            raise UserError(
                f"{self.path}: none of its {len(problems)} checkpoints can be used. "
                f"Move them away to start from the beginning.\n  " + "\n  ".join(problems)
            )
        return None

    def _remove_old(self, saved: Path) -> None:
        scores: dict[Path, float | None] = {}
        for path in self.files():
            # One that cannot be read counts for nothing and is left for the user to look at.
            with contextlib.suppress(UserError):
                scores[path] = read_score(path)
        readable = list(scores)
        scored = [path for path in reversed(readable) if scores[path] is not None]
        best = sorted(scored, key=lambda path: scores[path] or 0.0, reverse=True)[: self._keep_best]
        kept = {saved, *readable[-self._keep :], *best}
        for path in readable:
            if path not in kept:
                path.unlink(missing_ok=True)


def updates_of(path: Path) -> int:
    """The number of updates in a checkpoint's name."""
    match = _match(path)
    assert match, f"{path.name} is no checkpoint name"
    return int(match[1])


def _match(path: Path) -> re.Match[str] | None:
    return _NAME.fullmatch(path.name)
