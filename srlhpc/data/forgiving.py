"""One policy for a shared file system that fails a look in passing: it is forgiven for a stated time, everywhere alike.

A file server that restarts, a handle that went stale because another host replaced the file, a network that was away:
each makes `exists`, `stat`, a listing or a read fail once or for seconds. Whoever looks again and again counts such a
look as nothing new (`Forgiving`); whoever must know now tries again (`patiently`). What fails for `FORGIVEN_SECONDS`
without a success between is a `FileSystemLostError`: a rank or foreman then ends as failed, and its message
has the path.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from srlhpc.errors import ClusterError

FORGIVEN_SECONDS = 120.0
"""How long looks at one path may fail: long enough for another file server to take over."""
RETRY_SECONDS = 0.5
PASSING = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EINTR,
        errno.EIO,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENOTCONN,
        errno.EREMOTEIO,
        errno.ESHUTDOWN,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)
"""Errors that NFS, Lustre and their kind give while a server is away and that go when it is back."""

_T = TypeVar("_T")


class FileSystemLostError(ClusterError):
    """A file system has failed for longer than is forgiven."""


class Forgiving:
    """Looks at files, again and again, for one process.

    Args:
        seconds: for which a path may fail.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float = FORGIVEN_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._failing: dict[Path, tuple[float, float]] = {}
        """When the first and the last of a path's failed looks ended."""

    def look(self, path: Path, look: Callable[[], _T], otherwise: _T) -> _T:
        """What `look` sees at a path; `otherwise` if nothing is there, or while the file system fails in passing.

        Raises:
            FileSystemLostError: it has failed for too long.
            OSError: of another kind, for example a folder that may not be read.
        """
        began = self._clock()
        try:
            seen = look()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            seen = otherwise
        except OSError as error:
            if error.errno not in PASSING:
                raise
            if self._has_failed_for(path, began) >= self._seconds:
                raise lost(path, error, self._seconds) from error
            return otherwise
        self._failing.pop(path, None)
        return seen

    def _has_failed_for(self, path: Path, began: float) -> float:
        """Seconds, after one more failed look. Where nobody looked for long, as while suspended, they count from it."""
        now = self._clock()
        since, last = self._failing.get(path, (now, now))
        if began - last >= FORGIVEN_SECONDS:
            since = now
        self._failing[path] = since, now
        return now - since

    def exists(self, path: Path) -> bool:
        return self.look(path, lambda: os.stat(path) is not None, False)

    def names(self, folder: Path) -> set[str]:
        """What is in a folder."""
        return self.look(folder, lambda: set(os.listdir(folder)), set())

    def text(self, path: Path) -> str | None:
        """What is in a file; None if it is not there."""
        return self.look(path, lambda: path.read_text(errors="replace"), None)


def patiently(
    path: Path,
    act: Callable[[], _T],
    *,
    seconds: float = FORGIVEN_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> _T:
    """Does something with a path, again while the file system fails in passing.

    Raises:
        FileSystemLostError: it has failed for too long.
        OSError: of another kind.
    """
    began = clock()
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in PASSING:
                raise
            if clock() - began >= seconds:
                raise lost(path, error, seconds) from error
        sleep(RETRY_SECONDS)


def read_surely(path: Path) -> dict[str, Any] | None:
    """Same as `atomic.read_json`, for callers who must not take a file that cannot be read for one that is not there.

    Raises:
        FileSystemLostError: it cannot be read for too long.
    """
    try:
        content = json.loads(patiently(path, path.read_bytes))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def matching(folder: Path, pattern: str, *, seconds: float = FORGIVEN_SECONDS) -> list[Path]:
    """Files of a folder by a pattern, sorted by name; none if there is no such folder. Waits as `patiently` does."""
    return patiently(folder, lambda: sorted(folder.glob(pattern)), seconds=seconds)


def lost(path: Path, error: OSError, seconds: float) -> FileSystemLostError:
    """The error for a path whose looks have failed for so long."""
    return FileSystemLostError(
        f"{path}: the file system has failed for {seconds:.0f} s on {socket.gethostname()}: {error.strerror or error}. "
        "When `ls` works there again, resume with `srlhpc resume`."
    )
