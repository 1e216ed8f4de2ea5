"""Who runs a run: keeps a second writer out, and lets the next one in when the holder is dead."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json, write_json
from srlhpc.data.forgiving import patiently, read_surely
from srlhpc.errors import UserError
from srlhpc.runs.processes import ProcessIdentity
from srlhpc.slurm.jobs import job_is_active


@dataclass(frozen=True)
class Holder:
    """Content of a lease."""

    process: ProcessIdentity
    attempt: int
    job: str | None = None
    """The Slurm job that holds it; its next restart, after a requeue, may be on another host."""

    def is_alive(self, own_job: str | None = None) -> bool:
        """Whether the holder still runs, or its job will go on.

        A holder on another host without a job counts as alive, since nobody here can tell, and so does a job when
        Slurm is silent.

        Args:
            own_job: the job that asks: its earlier restarts are dead.
        """
        if self.process.is_here and self.process.is_alive():
            return True
        if self.job is None:
            return not self.process.is_here
        return self.job != own_job and job_is_active(self.job)


def read_lease(path: Path) -> Holder | None:
    """The holder; None if there is no lease or it cannot be read. The file's age tells when it was renewed."""
    return _holder(read_json(path))


def _holder(content: Mapping[str, Any] | None) -> Holder | None:
    process = ProcessIdentity.from_json(content or {})
    return Holder(process, int((content or {}).get("attempt", 0)), (content or {}).get("job")) if process else None


class Lease:
    """The lease of a run, held by this process from `take` to `release`, or for the length of a `with held(...)`.

    Args:
        path: of the lease.
        job: the Slurm job that holds it beyond the life of this process; None for none.
    """

    def __init__(self, path: Path, job: str | None = None) -> None:
        self._path, self._job = path, job
        self._attempt = 0

    @contextlib.contextmanager
    def held(self, attempt: int) -> Iterator[Lease]:
        """Takes the lease as `take` does, and releases it at the end."""
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
        own = _beside(self._path)
        write_json(own, self._content())
        try:
            # A link is made only where the name is free, on NFS too: of two that take the lease at once, one does.
            while not _linked(own, self._path):
                put_away_dead(self._path, self._job)
        finally:
            own.unlink(missing_ok=True)

    def take_within(self, seconds: float, attempt: int) -> None:
        """Same as `take`, but waits that long for a holder that is just leaving."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.take(attempt)
            except UserError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1.0)

    def renew(self, attempt: int | None = None) -> Holder | None:
        """Says that this process still holds it, and at which attempt, if that is another now.

        Returns:
            Who holds it instead; whoever called must then leave the run alone.
        """
        self._attempt = self._attempt if attempt is None else attempt
        # A file system that fails just now must not end a run.
        with contextlib.suppress(OSError):
            try:
                return self._written_again()
            except FileNotFoundError:
                return self._taken_again()
        return None

    def _written_again(self) -> Holder | None:
        """Writes into the file that it has looked at: in place, so in no new room and over nobody's new lease."""
        with open(self._path, "r+b", buffering=0) as file:
            before = file.read()
            holder = _holder(_parsed(before))
            if holder is not None and holder.process != ProcessIdentity.own():
                return holder
            # Not truncated, at which a reader could find it empty; blanks cover the rest of a longer text.
            file.seek(0)
            file.write(json.dumps(self._content()).encode().ljust(len(before)))
        return None

    def _taken_again(self) -> Holder | None:
        """Somebody has removed the lease; it is taken anew, if the run is there and nobody else was faster."""
        if not self._path.parent.is_dir():
            return None
        try:
            self.take(self._attempt)
        except UserError:
            return read_lease(self._path)
        return None

    def release(self) -> None:
        """Gives it back, if this process holds it."""
        holder = read_lease(self._path)
        if holder and holder.process == ProcessIdentity.own():
            # What fails here is the lease of a process that has ended.
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _content(self) -> dict[str, Any]:
        return {**ProcessIdentity.own().to_json(), "attempt": self._attempt, "renewed": time.time(), "job": self._job}


def put_away_dead(path: Path, own_job: str | None = None) -> None:
    """Removes the lease of a holder that is dead; an earlier restart of `own_job` is.

    Raises:
        UserError: the holder lives, or a living one took its place just now.
    """
    holder = _holder(read_surely(path))
    if holder and holder.is_alive(own_job):
        raise in_use(path, holder)
    aside = _beside(path, ".dead")
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, aside)
        taken = read_lease(aside)
        if taken and taken != holder and taken.is_alive(own_job):
            # Between reading and renaming somebody else took the dead one's place.
            _linked(aside, path)
            aside.unlink()
            raise in_use(path, taken)
        aside.unlink()


def in_use(path: Path, holder: Holder) -> UserError:
    """The refusal of a run that somebody else runs."""
    name = path.parent.name
    where = f"job {holder.job}" if holder.job else f"process {holder.process.pid} on {holder.process.host}"
    hint = (
        f"wait for it, or end it by `srlhpc cancel {shlex.quote(name)}`."
        if holder.process.is_here or holder.job
        else f"end it there; if that host is gone, remove {path} and try again."
    )
    return UserError(f"{path.parent}: is in use: {where} runs attempt {holder.attempt}; {hint}")


def _beside(path: Path, suffix: str = "") -> Path:
    """A name that no other process of any host takes: in containers small process numbers are common."""
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}{suffix}")


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _linked(source: Path, target: Path) -> bool:
    try:
        patiently(target, lambda: os.link(source, target))
    except FileExistsError:
        # A server that did it and whose answer was lost is asked again.
        with contextlib.suppress(FileNotFoundError):
            return os.path.samefile(source, target)
        return False
    return True
