"""The checkpoints of one run: which is the newest whole one, and which are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from srlhpc.data.checkpoint import read_checkpoint, read_rule, read_score, write_checkpoint
from srlhpc.data.checkpoint_entries import Tree
from srlhpc.data.checkpoint_names import checkpoint_files, name_of, remove_files, unfinished_files
from srlhpc.data.forgiving import FORGIVEN_SECONDS
from srlhpc.data.full_disk import not_written
from srlhpc.data.score import EPISODES_IN_MEAN, Rule, Score
from srlhpc.errors import UserError, counted


class Newest(NamedTuple):
    """The newest checkpoint that is whole."""

    path: Path
    tree: dict[str, Any]
    problems: list[str]
    """What is wrong with each newer file."""


class CheckpointFolder:
    """A folder of files `updates-000000123.h5`, written by one process at a time.

    Args:
        path: the folder; made at the first save, if the run's folder is there.
        keep: newest files kept.
        keep_best: files with the best score kept beside those; scores of the newest one's rule come first.
        spare: a second place, for the newest checkpoint when it cannot be written to the first; None for none.
    """

    def __init__(self, path: Path, keep: int = 3, keep_best: int = 1, *, spare: Path | None = None) -> None:
        self.path, self.spare = path, spare
        self._keep = max(1, keep)
        self._keep_best = keep_best
        self._older: dict[Path, Rule | None] = {}
        """Rules of files that an older srlhpc wrote."""
        self.detour: str | None = None
        """Why the last one went to the spare place; None if it did not."""

    def files(self, *, patience: float = FORGIVEN_SECONDS) -> list[Path]:
        """All checkpoints, those in the spare place included, fewest updates first.

        Args:
            patience: seconds for which the file system may fail.

        Raises:
            FileSystemLostError: it fails for longer.
        """
        return checkpoint_files(self.path, *([self.spare] if self.spare else []), patience=patience)

    def save(self, tree: Tree, updates: int, score: float | None = None, rule: Rule = "return_mean") -> Path:
        """Writes one file, then removes the rests of interrupted writes and the files that need not be kept.

        A file that cannot be written goes to the spare place, if there is one, and leaves it when a later one can.

        Raises:
            OSError: it could not be written, to neither place; nothing was removed but rests.
        """
        try:
            path = self._save(self.path, tree, updates, score, rule)
        except OSError as error:
            # Without its folder the run was removed, and nothing of it is to appear elsewhere.
            if self.spare is None or isinstance(error, FileNotFoundError):
                raise
            path = self._save_spare(self.spare, tree, updates, score, rule, error)
            self.detour = not_written(self.path, error)
            return path
        self.detour = None
        self._remove_old(path)
        if self.spare is not None:
            remove_files(checkpoint_files(self.spare))
        return path

    def _save(self, folder: Path, tree: Tree, updates: int, score: float | None, rule: Rule) -> Path:
        folder.mkdir(exist_ok=True)
        for rest in unfinished_files(folder):
            rest.unlink(missing_ok=True)
        path = folder / name_of(updates)
        write_checkpoint(path, tree, score, rule)
        return path

    def _save_spare(
        self, spare: Path, tree: Tree, updates: int, score: float | None, rule: Rule, error: OSError
    ) -> Path:
        """Keeps one file there; an error there, too, is reported with the first one."""
        try:
            spare.mkdir(parents=True, exist_ok=True)
            path = self._save(spare, tree, updates, score, rule)
        except OSError as second:
            error.add_note(f"nor to {spare}: {second}")
            raise error from second
        remove_files(other for other in checkpoint_files(spare) if other != path)
        return path

    def newest_valid(self, check: Callable[[Mapping[str, Any]], None] = lambda _tree: None) -> Newest | None:
        """The newest whole checkpoint and what is wrong with newer ones; None if the folder has no checkpoint.

        Args:
            check: raises UserError if a checkpoint lacks something beside its file.

        Raises:
            UserError: there are checkpoints and none is whole.
        """
        problems: list[str] = []
        for path in reversed(self.files()):
            try:
                return Newest(path, _checked(path, check), problems)
            except UserError as error:
                problems.append(str(error))
        if problems:
            raise UserError(
                f"{self.path}: of {counted(len(problems), 'checkpoint')} none can be used. "
                f"Move them away to start from the beginning.\n  " + "\n  ".join(problems)
            )
        return None

    def _remove_old(self, saved: Path) -> None:
        scores: dict[Path, Score | None] = {}
        for path in checkpoint_files(self.path):
            # One that cannot be read counts for nothing and is left for the user to look at.
            with contextlib.suppress(UserError):
                scores[path] = self._score(path)
        readable = list(scores)
        # Newest first, so that sorting keeps the newer one of two equal scores in front.
        scored = {path: score for path in reversed(readable) if (score := scores[path]) is not None}
        rule = next((score.rule for score in scored.values()), None)
        best = sorted(scored, key=lambda path: (scored[path].rule == rule, scored[path].value), reverse=True)
        kept = {saved, *readable[-self._keep :], *best[: self._keep_best]}
        remove_files(path for path in readable if path not in kept)

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


def _checked(path: Path, check: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
    """What is in a checkpoint.

    Raises:
        UserError: it is damaged, or something that it needs beside itself is.
    """
    tree = read_checkpoint(path)
    try:
        check(tree)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return tree


def _rule_of_older(path: Path) -> Rule | None:
    """A file without a rule has a mean return, of however many episodes it keeps; those of few do not compare."""
    returns = read_checkpoint(path).get("meta", {}).get("returns", ())
    return "return_mean" if len(returns) >= EPISODES_IN_MEAN else None
