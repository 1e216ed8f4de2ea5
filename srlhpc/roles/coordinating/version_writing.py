"""Writes the versions of policies as their first trainers send them, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from srlhpc.data.full_disk import not_written
from srlhpc.data.version_folder import VersionFolder

log = logging.getLogger(__name__)


class VersionWriting:
    """Versions in the order in which they come; one that cannot be written is lost, and training goes on.

    Args:
        folders: policy to where its versions go.
        meta: what else goes into a file: values by name.
        in_thread: write beside the loop; serial mode writes at once.
    """

    def __init__(
        self, folders: Mapping[str, VersionFolder], meta: Callable[[], Mapping[str, Any]], *, in_thread: bool
    ) -> None:
        self._folders, self._meta, self._in_thread = folders, meta, in_thread
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        """What broke the thread; raised by the next poll."""
        self.problem: str | None = None
        """Why the newest version is not there; None if it is."""

    def take(self, policy: str, part: Mapping[str, Any]) -> None:
        """Writes a version, now or soon.

        Args:
            policy: its name.
            part: `parameters`, `counters`.
        """
        counters = part["counters"]
        meta = {**self._meta(), **{name: int(counters[name]) for name in ("updates", "steps", "agent_steps")}}
        self._waiting.append((policy, {"meta": meta, "policies": {policy: dict(part)}}))
        self.poll()

    def poll(self) -> None:
        """Begins with the next version, if the one before is written.

        Raises:
            Exception: what broke the thread.
        """
        if self._thread is not None and not self._thread.is_alive():
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise self._error
        if self._thread is not None or not self._waiting:
            return
        if not self._in_thread:
            self._write_all()
            return
        self._thread = threading.Thread(target=self._write_aside, name="versions")
        self._thread.start()

    def _write_aside(self) -> None:
        try:
            self._write_all()
        except Exception as error:
            self._error = error

    def _write_all(self) -> None:
        while self._waiting:
            policy, tree = self._waiting.popleft()
            folder, updates = self._folders[policy], int(tree["meta"]["updates"])
            try:
                folder.save(tree, updates)
            except OSError as error:
                self.problem = f"version {updates} of {policy} is lost: {not_written(folder.path, error)}"
                log.warning(self.problem)
            else:
                self.problem = None

    def close(self) -> None:
        """Waits until all that came is written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._write_all()
