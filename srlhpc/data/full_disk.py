"""What a full disk is called, and room that is kept for a run's last words."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import write_json

_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "no file may get so large here (see `ulimit -f`)",
}
RESERVE_BYTES = 1 << 16
ROOM_BYTES = 1 << 20
"""A disk with less free room counts as full."""


def is_full(error: OSError) -> bool:
    """Whether room is what is missing."""
    return error.errno in _WORDS


def free_bytes(folder: Path) -> int | None:
    """Room for this user on the folder's disk; None if that is not known. It knows nothing of quotas."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize


def leave_room(folder: Path, size: int) -> None:
    """Looks before something large is written that a run can do without: its last words need the rest.

    Raises:
        OSError: the disk would count as full afterwards.
    """
    free = free_bytes(folder)
    if free is not None and free - size < ROOM_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def size_text(size: int) -> str:
    """`0 bytes`, `64 KB`, `3.1 MB`, `2.5 GB`."""
    for limit, unit in ((1 << 30, "GB"), (1 << 20, "MB")):
        if size >= limit:
            return f"{size / limit:.1f} {unit}"
    return f"{size / 1024:.0f} KB" if size >= 1024 else f"{size} bytes"


def not_written(folder: Path, error: OSError, needed: int | None = None) -> str:
    """`the disk is full (No space left on device): 0 bytes free in /x, 3.1 MB needed`.

    Args:
        folder: where it was to be written.
        error: what came of it.
        needed: size of the file, if that is known.
    """
    words = f"{_WORDS[error.errno or 0]} ({error.strerror})" if is_full(error) else error.strerror or str(error)
    free = free_bytes(folder) if is_full(error) else None
    room = f"{size_text(free)} free in {folder}" if free is not None else f"in {folder}"
    return f"{words}: {room}" + (f", {size_text(needed)} needed" if needed is not None and is_full(error) else "")


class Reserve:
    """A file that takes some room, and gives it back when the disk is full: status, outcome and end still fit then.

    Args:
        path: the file; none is made before `keep`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self) -> None:
        """Takes the room, if it is not taken and there is some."""
        with contextlib.suppress(OSError):
            if self.path.exists() or not self.path.parent.is_dir():
                return
            try:
                # Zeros may take no room on disks that compress.
                self.path.write_bytes(os.urandom(RESERVE_BYTES))
            # A part of it would be taken for all of it the next time.
            except OSError:
                self.path.unlink(missing_ok=True)

    def write_json(self, path: Path, content: Mapping[str, Any] | list[Any], *, sync: bool = False) -> None:
        """Same as `atomic.write_json`, in the reserve's room if there is no other.

        Raises:
            OSError: there is not even that.
        """
        self.lend(lambda: write_json(path, content, sync=sync))

    def lend(self, write: Callable[[], object]) -> None:
        """Writes; on a full disk it writes again in the reserve's room, and takes that anew from what is free then."""
        try:
            write()
        except OSError as error:
            if not is_full(error):
                raise
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
            write()
            self.keep()
