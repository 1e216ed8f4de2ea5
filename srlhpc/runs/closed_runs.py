"""Runs that this user may not look at, because they are another's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from srlhpc.runs.paths import RunPaths


def why_closed(folder: Path) -> str | None:
    """Why a run's folder cannot be looked at; None if it can, or is none."""
    paths = RunPaths(folder)
    try:
        # Without waiting for the other end of a pipe that somebody has made there.
        os.close(os.open(paths.run, os.O_RDONLY | os.O_NONBLOCK))
        os.listdir(paths.attempts)
    except PermissionError:
        return f"{folder}: belongs to {_owner(folder)}, and you may not look into it"
    except OSError:
        return None
    return None


def closed_runs(root: Path) -> list[str]:
    """A line for each run, or folder, under a root that cannot be looked at."""
    try:
        folders = sorted(entry for entry in root.iterdir() if entry.is_dir())
    except OSError:
        return []
    return [line for folder in folders if (line := why_closed(folder)) is not None]


def _owner(folder: Path) -> str:
    with suppress(OSError, KeyError):
        return f"user {folder.owner()}"
    return "another user"
