"""Who runs a run: keeps a second writer out, and lets the next one in when the holder is dead."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json, write_json
from srlhpc.launch.processes import ProcessIdentity
from srlhpc.objects import UserError


@dataclass(frozen=True)
class Holder:
    """What a lease says."""

    process: ProcessIdentity
    attempt: int
    renewed: float
    """Seconds since 1970."""

    def is_alive(self) -> bool:
        """Whether the holder still runs; a holder on another host counts as alive, since nobody here can tell."""
        return not self.process.is_here or self.process.is_alive()


def read_lease(path: Path) -> Holder | None:
    """The holder; None if there is no lease or it cannot be read."""
    content = read_json(path) or {}
    process = ProcessIdentity.from_json(content)
    if process is None:
        return None
    return Holder(process, int(content.get("attempt", 0)), float(content.get("renewed", 0.0)))


class Lease:
    """The lease of a run, held by this process from `take` to `release`, or for the length of a `with held(...)`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._attempt = 0

    @contextlib.contextmanager
    def held(self, attempt: int) -> Iterator[Lease]:
        """As `take`, and `release` at the end."""
        self.take(attempt)
        try:
            yield self
        finally:
            self.release()

    def take(self, attempt: int) -> None:
        """Takes the lease, from a dead holder if need be.

        Raises:
            UserError: a live process holds it.
        """
        self._attempt = attempt
        own = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        write_json(own, self._content())
        try:
            while not _linked(own, self._path):
                put_away_dead(self._path)
        finally:
            own.unlink(missing_ok=True)

    def renew(self) -> None:
        """Says that the holder is still there."""
        write_json(self._path, self._content())

    def release(self) -> None:
        """Gives it back, if this process holds it."""
        holder = read_lease(self._path)
        if holder and holder.process == ProcessIdentity.own():
            self._path.unlink(missing_ok=True)

    def _content(self) -> dict[str, Any]:
        return {**ProcessIdentity.own().to_json(), "attempt": self._attempt, "renewed": time.time()}


def put_away_dead(path: Path) -> None:
    """Removes the lease of a holder that is dead.

    Raises:
        UserError: the holder lives, or a living one took its place just now.
    """
    holder = read_lease(path)
    if holder and holder.is_alive():
        raise in_use(path, holder)
    aside = path.with_name(f".{path.name}.{os.getpid()}.dead")
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, aside)
        taken = read_lease(aside)
        if taken and taken != holder and taken.is_alive():
            # Between reading and renaming somebody else took the dead one's place.
            _linked(aside, path)
            aside.unlink()
            raise in_use(path, taken)
        aside.unlink()


def in_use(path: Path, holder: Holder) -> UserError:
    """The refusal of a run that somebody else runs."""
    name = path.parent.name
    where = f"process {holder.process.pid} on {holder.process.host}"
    hint = (
        f"wait for it, or end it by `srlhpc cancel {name}`."
        if holder.process.is_here
        else f"end it there; if that host is gone, remove {path} and try again."
    )
    return UserError(f"{path.parent}: is in use: {where} runs attempt {holder.attempt}; {hint}")


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    return True
