"""The versions of one policy: what acts after so many updates, a file each; which of them are kept."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from srlhpc.data.checkpoint import write_checkpoint
from srlhpc.data.checkpoint_entries import Tree
from srlhpc.data.checkpoint_names import checkpoint_files, name_of, remove_files, unfinished_files, updates_of
from srlhpc.data.forgiving import FORGIVEN_SECONDS


def kept_versions(updates: Collection[int], keep: int | None, named: Collection[int]) -> set[int]:
    """Which of some versions are kept: the newest and the named; all if `keep` is None."""
    newest = sorted(updates)[-keep:] if keep is not None else updates
    return {*newest, *(version for version in named if version in updates)}


class VersionFolder:
    """A folder of files `updates-000000123.h5`, written by one process at a time.

    A file is a small checkpoint: `meta` and the parameters of one policy.

    Args:
        path: the folder; made at the first save.
        keep: newest files kept; None: all.
        named: updates whose files are kept in any case.
    """

    def __init__(self, path: Path, keep: int | None = None, named: Collection[int] = ()) -> None:
        self.path, self._keep, self._named = path, keep, frozenset(named)

    def files(self, *, patience: float = FORGIVEN_SECONDS) -> list[Path]:
        """All versions, fewest updates first.

        Raises:
            FileSystemLostError: the file system fails for longer than `patience`, in seconds.
        """
        return checkpoint_files(self.path, patience=patience)

    def save(self, tree: Tree, updates: int, needed: Collection[int] = ()) -> Path:
        """Writes one version, then removes those that need not be kept; `needed` are kept this time.

        Raises:
            OSError: it could not be written; nothing was removed but rests of interrupted writes.
        """
        # Without its own folder a run was removed, and nothing of it is to appear again.
        self.path.parent.mkdir(exist_ok=True)
        self.path.mkdir(exist_ok=True)
        for rest in unfinished_files(self.path):
            rest.unlink(missing_ok=True)
        path = self.path / name_of(updates)
        write_checkpoint(path, tree)
        if self._keep is not None:
            files = {updates_of(file): file for file in self.files()}
            kept = {updates, *kept_versions(files, self._keep, self._named), *needed}
            remove_files(file for version, file in files.items() if version not in kept)
        return path

    def remove_later(self, updates: int) -> None:
        """Removes what was written after so many updates, which a run that goes on from there makes anew.

        Those that are named stay until then: the run may never come so far again.
        """
        remove_files(
            file for file in self.files() if updates_of(file) > updates and updates_of(file) not in self._named
        )
