"""Names of checkpoint files, `updates-000000123.h5`, and which a run has. Opens none of them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from srlhpc.data.atomic import WRITING
from srlhpc.data.forgiving import FORGIVEN_SECONDS, matching

_ANY = "updates-*.h5"
_NAME = re.compile(r"updates-(\d+)\.h5")


def name_of(updates: int) -> str:
    """The name of the checkpoint after so many updates."""
    return f"updates-{updates:09d}.h5"


def updates_of(path: Path) -> int:
    """The number of updates in a checkpoint's name."""
    match = _NAME.fullmatch(path.name)
    assert match, f"{path.name} is no checkpoint name"
    return int(match[1])


def unfinished_files(folder: Path) -> list[Path]:
    """What interrupted writes of checkpoints have left in a folder."""
    return list(folder.glob(f".{_ANY}.*{WRITING}"))


def checkpoint_files(*folders: Path, patience: float = FORGIVEN_SECONDS) -> list[Path]:
    """All checkpoints in some folders, fewest updates first; of two with one name, that of the first folder.

    Raises:
        FileSystemLostError: the file system fails for too long.
    """
    # Later entries replace earlier ones, so the first folder comes last.
    found = {path.name: path for folder in reversed(folders) for path in matching(folder, _ANY, seconds=patience)}
    return sorted((path for name, path in found.items() if _NAME.fullmatch(name)), key=updates_of)


def remove_files(files: Iterable[Path]) -> None:
    """Removes files; one that will not go is left for the next time."""
    for file in files:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
