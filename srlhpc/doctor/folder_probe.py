"""Whether runs can be written to a folder: space, links, locks. Leaves nothing there."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WRITTEN_BYTES = 16 << 20
LOCKING = {"HDF5_USE_FILE_LOCKING": "TRUE"}
"""Environment of a process that tries locks: HDF5 reads it when it is loaded, and ranks are started without locking."""
_QUOTA_SECONDS = 10.0
_LOCK_SECONDS = 60.0
OPENED, KEPT_OUT = "opened", "kept out"


@dataclass(frozen=True)
class FolderFacts:
    """What was seen in a folder."""

    folder: str
    free_bytes: int = 0
    free_files: int | None = None
    """None: the file system has no limit of its own."""
    error: str = ""
    """What was said when a file of `WRITTEN_BYTES` was written and linked; empty if it worked."""
    over_quota: str = ""
    """What the `quota` command complains about; empty if it does not, or if there is none."""
    lock: str = ""
    """What a second process was told when it opened an HDF5 file that the first had locked."""


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def probe_folder(folder: Path, second: Callable[[Path], str] | None = None) -> FolderFacts:
    """Writes, links and locks a file.

    Args:
        folder: exists.
        second: opens an HDF5 file as another process would, and says what happened.
    """
    space = os.statvfs(folder)
    error = _write(folder)
    return FolderFacts(
        str(folder),
        space.f_bavail * space.f_frsize,
        space.f_favail if space.f_files else None,
        error,
        over_quota(),
        "" if error else lock_from_two_processes(folder, second or open_in_second_process),
    )


def _write(folder: Path) -> str:
    path, link = folder / f".doctor-{os.getpid()}", folder / f".doctor-{os.getpid()}-link"
    try:
        with open(path, "wb") as file:
            for _ in range(WRITTEN_BYTES >> 20):
                file.write(b"\1" * (1 << 20))
            file.flush()
            os.fsync(file.fileno())
        os.link(path, link)
    except OSError as error:
        return said(error)
    finally:
        path.unlink(missing_ok=True)
        link.unlink(missing_ok=True)
    return ""


def over_quota() -> str:
    """What `quota -q` prints: only where a limit is passed."""
    if shutil.which("quota") is None:
        return ""
    try:
        done = subprocess.run(["quota", "-q"], capture_output=True, text=True, timeout=_QUOTA_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return " ".join(done.stdout.split())


def lock_from_two_processes(folder: Path, second: Callable[[Path], str]) -> str:
    """Locks an HDF5 file here and lets another process try it.

    Returns:
        What the other was told, or why it could not be locked here.
    """
    path = folder / f".doctor-{os.getpid()}.h5"
    try:
        with hold_locked(path):
            return second(path)
    except OSError as error:
        return f"not locked: {said(error)}"
    finally:
        path.unlink(missing_ok=True)


def hold_locked(path: Path) -> AbstractContextManager[Any]:
    """A new HDF5 file, open and locked until it is closed.

    Raises:
        OSError: it cannot be locked.
    """
    import h5py

    file: AbstractContextManager[Any] = h5py.File(path, "w", locking=True)
    return file


def try_locked(path: Path) -> str:
    """Opens a file that another process has locked; `KEPT_OUT` is right."""
    import h5py

    try:
        h5py.File(path, "r+", locking=True).close()
    except BlockingIOError:
        return KEPT_OUT
    except OSError as error:
        return said(error)
    return OPENED


def open_in_second_process(path: Path) -> str:
    """Same as `try_locked`, from a process of its own."""
    command = [sys.executable, "-m", "srlhpc.doctor.folder_probe", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LOCK_SECONDS, env=os.environ | LOCKING)
    except subprocess.TimeoutExpired:
        return f"no answer for {_LOCK_SECONDS:g} s"
    return done.stdout.strip() or done.stderr.strip()[-200:]


def said(error: OSError) -> str:
    """A short word for an error of the system."""
    known = {errno.ENOSPC: "no space left", errno.EDQUOT: "quota exceeded", errno.ENOLCK: "no locks available"}
    return known.get(error.errno or 0) or (os.strerror(error.errno) if error.errno else str(error))


if __name__ == "__main__":
    sys.stdout.write(try_locked(Path(sys.argv[1])))
