"""Writes where a run stands beside the coordinator's loop, so that a slow file system stalls nobody.

Of several statuses that wait, the newest is written; of the lines of metrics, none is lost while there is memory.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import write_atomically
from srlhpc.data.forgiving import FORGIVEN_SECONDS
from srlhpc.data.full_disk import Reserve, not_written

log = logging.getLogger(__name__)

_MOST_LINES = 100_000
"""Lines of metrics that are kept while they cannot be written; then the oldest go."""
_MISSES = 3
"""Writes in a row, about a second apart, that must miss the attempt's folder until it counts as removed."""


class RunFiles:
    """Status and metrics of a run.

    Args:
        status: replaced at every write.
        metrics: lines are added.
        reserve: room for them on a full disk.
        attempt: folder of the attempt; if it goes, the run's folder was removed, and nothing is made anew.
        description: a file that is in no other attempt's folder like this; None: the folder's number alone tells.
        in_thread: write beside the loop; else at once.
    """

    def __init__(
        self,
        status: Path,
        metrics: Path,
        reserve: Reserve,
        attempt: Path,
        description: Path | None = None,
        *,
        in_thread: bool,
    ) -> None:
        self._status, self._metrics, self._attempt = status, metrics, attempt
        self._description = description
        self._described = _content(description)
        self._reserve = reserve
        self._reserve.keep()
        self._identity = _identity(attempt)
        self._misses = 0
        self._newest: Mapping[str, Any] | None = None
        self._lines: list[str] = []
        self._condition = threading.Condition()
        self._is_writing = self._is_closed = False
        self._error: Exception | None = None
        """What broke the thread; raised by the next write."""
        self.problem: str | None = None
        """Why the last write failed."""
        self._thread = threading.Thread(target=self._work, name="status", daemon=True) if in_thread else None
        if self._thread:
            self._thread.start()

    @property
    def is_removed(self) -> bool:
        """Whether the run's folder is gone, or another one has taken its place."""
        return self._misses >= _MISSES

    def write(self, status: Mapping[str, Any], line: Mapping[str, Any] | None = None) -> None:
        """Takes a status, and a line of metrics if there is one; they must not change any more."""
        if self._error is not None:
            raise self._error
        with self._condition:
            self._newest = status
            if line is not None:
                self._lines = [*self._lines[-_MOST_LINES:], json.dumps(line) + "\n"]
            self._condition.notify_all()
        if self._thread is None:
            self._write_waiting()

    def write_outcome(self, path: Path, content: Mapping[str, Any]) -> None:
        """Writes the outcome at once, after everything that waits; on a full disk in the reserve's room."""
        self.flush()
        try:
            if self._is_ours():
                self._reserve.write_json(path, content)
        except OSError as error:
            # A failed write must not keep the ranks from leaving.
            log.warning("the outcome (%s, %s) could not be written: %s", content["state"], content["reason"], error)

    def flush(self) -> None:
        """Waits until what was taken is written, or cannot be; not for ever where the file system hangs."""
        with self._condition:
            self._condition.wait_for(lambda: self._newest is None and not self._is_writing, FORGIVEN_SECONDS)

    def close(self) -> None:
        """Lets the thread end."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def join(self) -> None:
        """Waits until the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._newest is not None or self._is_closed)
                if self._newest is None:
                    return
            try:
                self._write_waiting()
            except Exception as error:
                self._error = error
                return

    def _write_waiting(self) -> None:
        with self._condition:
            status, lines = self._newest, self._lines
            self._newest, self._lines, self._is_writing = None, [], True
        written = False
        try:
            written = self._try(status or {}, lines)
        finally:
            with self._condition:
                # Lines that could not be written come before those that were added meanwhile.
                self._lines = self._lines if written else [*lines, *self._lines]
                self._is_writing = False
                self._condition.notify_all()

    def _try(self, status: Mapping[str, Any], lines: list[str]) -> bool:
        """Whether the lines are written."""
        try:
            if not self._is_ours():
                self._misses += 1
                return False
            self._misses = 0
            self._reserve.write_json(self._status, status)
            if lines:
                self._reserve.lend(lambda: append(self._metrics, "".join(lines).encode()))
            self._reserve.keep()
        except OSError as error:
            self._say(f"status and metrics cannot be written: {not_written(self._status.parent, error)}")
            return False
        self.problem = None
        return True

    def _is_ours(self) -> bool:
        """Whether the attempt's folder is the one that was there at first.

        Raises:
            OSError: the file system fails.
        """
        found = _identity(self._attempt)
        if found == self._identity:
            return True
        # File systems in user space, such as sshfs, number folders anew that they have forgotten.
        if found is None or self._described is None or _content(self._description) != self._described:
            return False
        self._identity = found
        return True

    def _say(self, problem: str) -> None:
        if self.problem is None:
            log.warning(problem)
        self.problem = problem


def append(path: Path, content: bytes) -> None:
    """Adds to a file all of it, or nothing.

    Raises:
        OSError: the disk is full, say.
    """
    with open(path, "ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            while content:
                content = content[file.write(content) :]
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(size)
            raise


def _identity(folder: Path) -> int | None:
    """What tells a folder from another one of its name; None if it is not there.

    Raises:
        OSError: the file system fails.
    """
    try:
        return os.stat(folder).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None


def _content(path: Path | None) -> bytes | None:
    """What is in a file; None if it is not there.

    Raises:
        OSError: the file system fails.
    """
    try:
        return None if path is None else path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def cut_metrics(path: Path, steps: int) -> None:
    """Drops lines of a metrics file that lie after the checkpoint an attempt goes on from, and broken ones."""
    if not path.exists():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if _is_before(line, steps)]
    if kept == lines[: len(kept)]:
        # Cutting off the end needs no room, so it works on a full disk.
        os.truncate(path, sum(map(len, kept)))
        return
    write_atomically(path, *kept)


def _is_before(line: bytes, steps: int) -> bool:
    try:
        return line.endswith(b"\n") and bool(json.loads(line)["steps"] <= steps)
    except (ValueError, KeyError, TypeError):
        return False
