"""The foreman: runs one attempt in the foreground, watches it, ends it, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from srlhpc.launch.fork_server import ForkServer
from srlhpc.launch.monitor import AttemptMonitor, Limits, WatchedRank
from srlhpc.launch.mpiexec import start_ranks
from srlhpc.launch.rank_script import rank_program
from srlhpc.launch.signals import Signals
from srlhpc.runs.checkpoints import last_checkpoint
from srlhpc.runs.lease import Lease
from srlhpc.runs.outcome import Outcome, cause, summary, unwritten, write_end
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import kill_processes_of
from srlhpc.runs.progress import ProgressLine
from srlhpc.runs.shared_memory import remove_leftovers


class Foreman:
    """One attempt of a run, under MPI on this machine.

    Args:
        paths: the run.
        attempt: its new attempt, folders and files made.
        lease: of the run, taken.
        ranks: all ranks of the plan.
        program: command of a rank; None for `srlhpc.ranks.rank`.
        fork_server: what forks the ranks, or None; it ends with them.
        out: where progress and the summary go.
        limits: how long to wait.
    """

    def __init__(
        self,
        paths: RunPaths,
        attempt: AttemptPaths,
        lease: Lease,
        ranks: Sequence[WatchedRank],
        *,
        program: Sequence[str] | None = None,
        fork_server: ForkServer | None = None,
        out: TextIO | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._paths = paths
        self._attempt = attempt
        self._ranks = ranks
        self._program = rank_program(attempt) if program is None else program
        self._environment: dict[str, str] = {}
        self._fork_server = fork_server
        if fork_server is not None:
            self._program, self._environment = fork_server.program(self._program), fork_server.environment
        self._progress = ProgressLine(out or sys.stderr)
        self._monitor = AttemptMonitor(paths, attempt, lease, ranks, self._progress, limits or Limits())
        self._signals = Signals(attempt, raises=False)

    def run(self) -> Outcome:
        """Starts the ranks and stays until all are gone.

        Raises:
            UserError: there is no mpiexec.
        """
        with self._signals.caught():
            outcome = self._run_ranks()
        self._progress.say(summary(self._paths, outcome, self._progress.standing))
        return outcome

    def _run_ranks(self) -> Outcome:
        started = time.time()
        mpiexec = start_ranks(self._attempt, self._ranks, self._program, self._environment)
        try:
            forced = self._monitor.until_gone(mpiexec, self._must_go)
        except BaseException as error:
            write_end(self._attempt, Outcome("failed", "foreman", f"the foreman failed: {error!r}"), started)
            raise
        finally:
            # Nothing may stay, whatever happened above.
            mpiexec.kill()
            mpiexec.wait()
            # First, so that it tells whether it had ended before.
            remaining = self._fork_server.close() if self._fork_server is not None else []
            remaining += kill_processes_of(self._attempt.folder)
            remove_leftovers(self._attempt)
        if remaining:
            self._progress.say(f"processes {remaining} cannot be killed (they wait for the kernel)")
        outcome = Outcome.written(self._attempt) or forced or self._cause(mpiexec)
        write_end(self._attempt, outcome, started)
        return outcome

    def _must_go(self) -> Outcome | None:
        self._signals.insist()
        if self._signals.count <= 1:
            return None
        at_once = Outcome("interrupted", "interrupt", f"ended at once; {last_checkpoint(self._paths)}")
        return unwritten(self._paths, self._attempt) or at_once

    def _cause(self, mpiexec: subprocess.Popen[bytes]) -> Outcome:
        return cause(self._attempt, f"mpiexec ended with {mpiexec.returncode}; see {self._attempt.logs}/mpiexec.log")
