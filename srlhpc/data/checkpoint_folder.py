"""The checkpoints of one run: which is the newest whole one, and which are kept."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any, NamedTuple, cast

from srlhpc.data.atomic import WRITING
from srlhpc.data.checkpoint import read_checkpoint, read_rule, read_score, write_checkpoint
from srlhpc.data.checkpoint_entries import Tree
from srlhpc.data.score import EPISODES_IN_MEAN, Rule, Score
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
        keep_best: files with the best score kept beside those; scores of the newest one's rule come first.
    """

    def __init__(self, path: Path, keep: int = 3, keep_best: int = 1) -> None:
        self.path = path
        self._keep = max(1, keep)
        self._keep_best = keep_best
        self._older: dict[Path, Rule | None] = {}
        """Rules of files that an older srlhpc wrote."""

    def files(self) -> list[Path]:
        """All checkpoints, fewest updates first."""
        numbered = [(int(match[1]), path) for path in self.path.glob("updates-*.h5") if (match := _match(path))]
        return [path for _, path in sorted(numbered)]

    def save(self, tree: Tree, updates: int, score: float | None = None, rule: Rule = "return_mean") -> Path:
        """Writes one file, then removes the rests of interrupted writes and the files that need not be kept.

        Raises:
            OSError: it could not be written; nothing was removed but rests.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        for rest in self.path.glob(f".updates-*{WRITING}"):
            rest.unlink(missing_ok=True)
        path = self.path / f"updates-{updates:09d}.h5"
        write_checkpoint(path, tree, score, rule)
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
        scores: dict[Path, Score | None] = {}
        for path in self.files():
            # One that cannot be read counts for nothing and is left for the user to look at.
            with contextlib.suppress(UserError):
                scores[path] = self._score(path)
        readable = list(scores)
        scored = {path: score for path in reversed(readable) if (score := scores[path]) is not None}
        rule = next((score.rule for score in scored.values()), None)
        best = sorted(scored, key=lambda path: (scored[path].rule == rule, scored[path].value), reverse=True)
        kept = {saved, *readable[-self._keep :], *best[: self._keep_best]}
        for path in readable:
            if path not in kept:
                path.unlink(missing_ok=True)

    def _score(self, path: Path) -> Score | None:
        """A file's score, if it compares with others.

        Raises:
            UserError: the file cannot be read.
        """
        value, written = read_score(path), read_rule(path)
        if value is None:
            return None
        if written is None and path not in self._older:
            self._older[path] = _rule_of_older(path)
        rule = self._older[path] if written is None else cast(Rule, written)
        return Score(value, rule) if rule else None


def _rule_of_older(path: Path) -> Rule | None:
    """A file without a rule has a mean return, of however many episodes it keeps; those of few do not compare."""
    returns = read_checkpoint(path).get("meta", {}).get("returns", ())
    return "return_mean" if len(returns) >= EPISODES_IN_MEAN else None


def updates_of(path: Path) -> int:
    """The number of updates in a checkpoint's name."""
    match = _match(path)
    assert match, f"{path.name} is no checkpoint name"
    return int(match[1])


def _match(path: Path) -> re.Match[str] | None:
    return _NAME.fullmatch(path.name)
