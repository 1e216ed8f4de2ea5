"""The foreman of a serial run: all roles in this process, one after the other."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from srlhpc.data.atomic import read_json
from srlhpc.errors import UserError, kind_of
from srlhpc.launch.signals import Signals
from srlhpc.runs.checkpoints import last_checkpoint
from srlhpc.runs.lease import Lease, in_use
from srlhpc.runs.outcome import Outcome, is_removed, removed, summary, unwritten, write_end
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import ATTEMPT_VARIABLE, kill_processes_of
from srlhpc.runs.progress import ProgressLine, progress_text
from srlhpc.specs.child_processes import children


class SerialForeman:
    """One attempt of a run, in this process.

    Args:
        paths: the run.
        attempt: its new attempt, folders and files made.
        lease: of the run, taken.
        train: trains until the end and writes the outcome; obeys the mailbox at update boundaries.
        out: where progress and the summary go.
    """

    def __init__(
        self,
        paths: RunPaths,
        attempt: AttemptPaths,
        lease: Lease,
        train: Callable[[RunPaths, AttemptPaths], object],
        out: TextIO | None = None,
    ) -> None:
        self._paths = paths
        self._attempt = attempt
        self._lease = lease
        self._train = train
        self._progress = ProgressLine(out or sys.stderr)
        self._signals = Signals(attempt, raises=True)
        self._forced: Outcome | None = None
        """Why this process must leave the run alone."""

    def run(self) -> Outcome:
        """Trains until the end. An exception of training is shown with its traceback and ends the run, as for ranks."""
        with self._signals.caught():
            outcome = self._run_here()
        self._progress.say(summary(self._paths, outcome, self._progress.standing))
        return outcome

    def _run_here(self) -> Outcome:
        started = time.time()
        try:
            with self._reported(), self._no_processes_left():
                self._train(self._paths, self._attempt)
            forced = None
        except BaseException as error:
            forced = self._ended_by(error)
        silent = Outcome("failed", "killed", "training ended without an outcome")
        if is_removed(self._attempt):
            self._forced = removed(self._paths)
        outcome = self._forced or Outcome.written(self._attempt) or forced or silent
        write_end(self._attempt, outcome, started)
        return outcome

    def _ended_by(self, error: BaseException) -> Outcome:
        if isinstance(error, KeyboardInterrupt) and self._signals.count > 1:
            at_once = Outcome("interrupted", "interrupt", f"ended at once; {last_checkpoint(self._paths)}")
            return unwritten(self._paths, self._attempt) or at_once
        # One that nobody has asked for has been raised by the environment.
        if not isinstance(error, UserError):
            self._progress.say("".join(traceback.format_exception(error)).rstrip())
        return self._failed(error)

    def _failed(self, error: BaseException) -> Outcome:
        """Records the exception, as a rank does."""
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"
        kind = kind_of(error)
        content = {"rank": 0, "role": "serial", "index": 0, "label": "serial", "host": socket.gethostname()}
        content |= {"pid": os.getpid(), "time": time.time(), "kind": kind, "message": message}
        try:
            self._paths.reserve.write_json(
                self._attempt.failure(0), content | {"traceback": "".join(traceback.format_exception(error))}
            )
        except OSError as second:
            self._progress.say(f"{self._attempt.failure(0)} could not be written: {second}")
        return Outcome("failed", kind, message)

    @contextmanager
    def _no_processes_left(self) -> Iterator[None]:
        """Kills what the environment has started in the body, in sessions of its own too, as is done after ranks."""
        os.environ[ATTEMPT_VARIABLE] = str(self._attempt.folder)
        before = children()
        try:
            yield
        finally:
            # The environment may have cleared them all.
            os.environ.pop(ATTEMPT_VARIABLE, None)
            kill_processes_of(self._attempt.folder)
            # The environment variables that the kernel shows of a forked process are those that this one began with.
            for pid in children() - before:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Shows progress and renews the lease from a thread, meanwhile."""
        over = threading.Event()
        thread = threading.Thread(target=self._report, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _report(self, over: threading.Event) -> None:
        ticks = 0
        while not over.wait(0.2):
            ticks += 1
            self._signals.insist()
            if ticks % 50 == 0 and (holder := self._lease.renew()) is not None:
                self._forced = Outcome("failed", "lease", f"{in_use(self._paths.lease, holder)}")
                # The main thread ends at once, wherever it is: another one writes to the run.
                self._signals.count = 1
                os.kill(os.getpid(), signal.SIGINT)
                return
            status = read_json(self._paths.status) or {}
            if status.get("attempt") == self._attempt.number:
                self._progress.show(progress_text(status), time.monotonic())
