"""Writes the versions of policies as their first trainers send them, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from srlhpc.data.forgiving import FileSystemLostError
from srlhpc.data.full_disk import not_written
from srlhpc.data.version_folder import VersionFolder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Version:
    """One that came."""

    policy: str
    updates: int
    tree: dict[str, Any]
    needed: Collection[int]
    """Versions that stay when it is written."""


_MOST_WAITING = 2
"""Versions that may wait while one is written: a slow disk must not fill the memory."""


class VersionUser(Protocol):
    """Who uses versions while the run goes on."""

    def coming(self, policy: str, updates: int) -> Collection[int]:
        """One is about to be written; gives those of the policy that must not be removed then."""

    def written(self, policy: str, updates: int) -> None:
        """One can be read."""


class VersionWriting:
    """Versions in the order in which they come; one that cannot be written is lost, and training goes on.

    Args:
        folders: policy to where its versions go.
        meta: what else goes into a file: values by name.
        in_thread: write beside the loop; serial mode writes at once.
        user: who uses them; None: nobody.
    """

    def __init__(
        self,
        folders: Mapping[str, VersionFolder],
        meta: Callable[[], Mapping[str, Any]],
        *,
        in_thread: bool,
        user: VersionUser | None = None,
    ) -> None:
        self._folders, self._meta, self._in_thread, self._user = folders, meta, in_thread, user
        self._waiting: deque[_Version] = deque()
        self._written: deque[_Version] = deque()
        """Versions that the user is still to hear of."""
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        """What broke the thread; raised by the next poll."""
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> list[str]:
        """Why the newest version of a policy is not there, of each where it is not."""
        return list(self._problems.values())

    @property
    def is_behind(self) -> bool:
        """Whether so many wait that no more are to be taken."""
        return len(self._waiting) > _MOST_WAITING

    @property
    def is_idle(self) -> bool:
        """Whether all that came is written, or lost."""
        return self._thread is None and not self._waiting

    def take(self, policy: str, part: Mapping[str, Any]) -> None:
        """Writes a version, now or soon.

        Args:
            policy: its name.
            part: `parameters`, `counters`.
        """
        counters = part["counters"]
        meta = {**self._meta(), **{name: int(counters[name]) for name in ("updates", "steps", "agent_steps")}}
        updates = int(counters["updates"])
        needed = () if self._user is None else self._user.coming(policy, updates)
        self._waiting.append(_Version(policy, updates, {"meta": meta, "policies": {policy: dict(part)}}, needed))
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
        if self._thread is None and self._waiting and not self._in_thread:
            self._write_all()
        while self._written:
            version = self._written.popleft()
            if self._user is not None:
                self._user.written(version.policy, version.updates)
        if self._thread is not None or not self._waiting:
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
            version = self._waiting.popleft()
            folder = self._folders[version.policy]
            try:
                folder.save(version.tree, version.updates, version.needed)
            except (OSError, FileSystemLostError) as error:
                why = not_written(folder.path, error) if isinstance(error, OSError) else str(error)
                self._problems[version.policy] = f"version {version.updates} of {version.policy} is lost: {why}"
                log.warning(self._problems[version.policy])
            else:
                self._problems.pop(version.policy, None)
                self._written.append(version)

    def close(self) -> None:
        """Waits until all that came is written; raises as `poll`."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise self._error
        self._write_all()
