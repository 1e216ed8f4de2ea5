"""One attempt inside a Slurm job: start the ranks with one srun, watch them, end them, write down how it ended."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from srlhpc.data.forgiving import Forgiving
from srlhpc.launch.allocation import Allocation
from srlhpc.launch.attempt import describe
from srlhpc.launch.checkpoints import checkpoint_folder
from srlhpc.launch.end_of_job import EndOfJob
from srlhpc.launch.ending import Outcome, cause, write_end
from srlhpc.launch.lease import Lease, in_use
from srlhpc.launch.local import rank_program
from srlhpc.launch.node_sweep import sweep_nodes
from srlhpc.launch.processes import kill_processes_of
from srlhpc.launch.progress_line import ProgressLine
from srlhpc.launch.rundir import AttemptPaths, RunPaths
from srlhpc.launch.srun_step import end_step, srun_complaint, start_step
from srlhpc.launch.waiting_for_room import WaitingForRoom
from srlhpc.launch.watching import AttemptWatch, Limits

if TYPE_CHECKING:
    from srlhpc.launch.ranks import Plan

_ABORTED = "srun: Job step aborted"


class SlurmAttempt:
    """The next attempt of a run, in a job.

    Args:
        paths: the run.
        job: the job's id.
        plan: who does what.
        lease: of the run, taken.
        end_of_job: asked all the time.
        progress: where progress and losses are told.
        limits: how long to wait.
    """

    def __init__(
        self,
        paths: RunPaths,
        job: str,
        plan: Plan,
        lease: Lease,
        end_of_job: EndOfJob,
        *,
        progress: ProgressLine | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._job, self._plan, self._end_of_job = job, plan, end_of_job
        self._progress = progress or ProgressLine(sys.stderr)
        limits = limits or Limits()
        self.paths = _described(paths, plan, job, self._progress, limits)
        if (holder := lease.renew(self.paths.number)) is not None:
            raise in_use(paths.lease, holder)
        self._watch = AttemptWatch(paths, self.paths, lease, plan.ranks, self._progress, limits)

    def run(self, allocation: Allocation, plugin: str, room: WaitingForRoom) -> Outcome:
        """Stays until all ranks are gone.

        Args:
            allocation: the components of the job.
            plugin: for `srun --mpi`.
            room: waited for, if the disk is full.

        Raises:
            EndedFirst: the end of the job came before there was room to start the ranks.
        """
        attempt, started, broken = self.paths, time.time(), StepBreak(self.paths)
        step = room(lambda: start_step(attempt, self._plan.ranks, rank_program(attempt), allocation, plugin))
        try:
            forced = self._watch.until_gone(step, lambda: self._end_of_job.must_go(attempt) or broken())
        except BaseException as error:
            write_end(attempt, Outcome("failed", "foreman", f"the foreman failed: {error!r}"), started)
            raise
        finally:
            end_step(step)
            kill_processes_of(attempt.folder)
            self._sweep(allocation)
        told = f"srun ended with {step.returncode}{srun_complaint(attempt)}; see {attempt.logs}/srun.log"
        outcome = Outcome.written(attempt) or forced or cause(attempt, told)
        outcome = self._end_of_job.named(attempt, outcome)
        write_end(attempt, outcome, started)
        return outcome

    def _sweep(self, allocation: Allocation) -> None:
        if self._watch.was_up:
            return
        problem = sweep_nodes(self.paths, self._job, allocation)
        if problem:
            self._progress.say(f"shared memory of ranks that were killed at their start may be left: {problem}")


class StepBreak:
    """Notices that Slurm has ended a part of the step, whose ranks can then leave no word.

    Somebody cancels one component of a heterogeneous job, or a node is lost: srun says so in its log and waits for the
    other ranks, which know nothing.

    Args:
        attempt: srun writes to its logs.
        patience_seconds: for the foreman to be told why, as it is when the whole job ends.
    """

    def __init__(self, attempt: AttemptPaths, patience_seconds: float = 20.0) -> None:
        self._log, self._patience = attempt.logs / "srun.log", patience_seconds
        self._looks = Forgiving()
        self._size = 0
        self._since: float | None = None

    def __call__(self) -> Outcome | None:
        """The outcome that ends the other ranks, when patience is over."""
        if self._since is None and self._has_grown() and _ABORTED in (self._looks.text(self._log) or ""):
            self._since = time.monotonic()
        if self._since is None or time.monotonic() < self._since + self._patience:
            return None
        return Outcome("failed", "terminated", f"Slurm has ended a part of the step; see {self._log}")

    def _has_grown(self) -> bool:
        size = self._looks.look(self._log, lambda: self._log.stat().st_size, self._size)
        before, self._size = self._size, size
        return size > before


def _described(paths: RunPaths, plan: Plan, job: str, progress: ProgressLine, limits: Limits) -> AttemptPaths:
    """Makes the attempt's folder; it goes on from the newest whole checkpoint."""
    newest = checkpoint_folder(paths).newest_valid()
    for problem in newest.problems if newest else ():
        progress.say(f"skipped: {problem}")
    attempt = paths.new_attempt()
    describe(
        attempt,
        plan,
        (),
        newest.path if newest else None,
        serial=False,
        job=job,
        start_seconds=limits.start,
        last_checkpoint_seconds=limits.last_checkpoint,
    )
    return attempt
