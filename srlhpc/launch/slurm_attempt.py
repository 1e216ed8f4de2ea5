"""One attempt inside a Slurm job: start the ranks with one srun, watch them, end them, write down how it ended."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from srlhpc.data.forgiving import Forgiving
from srlhpc.launch.attempt import describe
from srlhpc.launch.grace_period import GracePeriod
from srlhpc.launch.monitor import AttemptMonitor, Limits
from srlhpc.launch.node_sweep import sweep_nodes
from srlhpc.launch.rank_script import rank_program
from srlhpc.launch.srun_step import ABORTED, end_step, srun_complaint, start_step
from srlhpc.launch.standby import Standby
from srlhpc.launch.waiting_for_room import WaitingForRoom
from srlhpc.runs.checkpoints import checkpoint_folder
from srlhpc.runs.lease import Lease, in_use
from srlhpc.runs.outcome import Outcome, cause, write_end
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import kill_processes_of
from srlhpc.runs.progress import ProgressLine
from srlhpc.slurm.allocation import Allocation

if TYPE_CHECKING:
    from srlhpc.plan.plan import Plan


PART_ENDED = "terminated"
"""Reason of the failure that `StepAbort` finds when no signal has told the foreman of another cause in time."""


class SlurmAttempt:
    """The next attempt of a run, in a job.

    Args:
        paths: the run.
        job: the job's id.
        plan: who does what.
        lease: of the run, taken.
        grace_period: asked all the time.
        standby: ranks that may stand by for it; others are started for the next.
        progress: where progress and losses are reported.
        limits: how long to wait.
    """

    def __init__(
        self,
        paths: RunPaths,
        job: str,
        plan: Plan,
        lease: Lease,
        grace_period: GracePeriod,
        standby: Standby,
        *,
        progress: ProgressLine | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._job, self._plan, self._grace_period, self._standby = job, plan, grace_period, standby
        self._progress = progress or ProgressLine(sys.stderr)
        limits = limits or Limits()
        # Before a new attempt is made, whose number would be theirs.
        self._waiting = standby.take()
        self.paths = self._waiting.attempt if self._waiting else paths.new_attempt()
        try:
            with self.paths.removed_unless_done():
                if (holder := lease.renew(self.paths.number)) is not None:
                    raise in_use(paths.lease, holder)
                self._describe(paths, limits)
        except BaseException:
            if self._waiting:
                end_step(self._waiting.step)
            raise
        self._monitor = AttemptMonitor(paths, self.paths, lease, plan.ranks, self._progress, limits)

    def run(self, allocation: Allocation, plugin: str, room: WaitingForRoom) -> Outcome:
        """Stays until all ranks are gone.

        Args:
            allocation: the components of the job.
            plugin: for `srun --mpi`.
            room: waited for, if the disk is full.

        Raises:
            EndedFirst: the end of the job came before there was room to start the ranks.
        """
        attempt, started, broken = self.paths, time.time(), StepAbort(self.paths)
        if self._waiting:
            step = self._waiting.step
        else:
            step = room(lambda: start_step(attempt, self._plan.ranks, rank_program(attempt), allocation, plugin))

        def overdue_outcome() -> Outcome | None:
            forced = self._grace_period.overdue_outcome(attempt) or broken()
            if not self._grace_period.has_begun(attempt):
                self._standby.tend(trains=self._monitor.trains)
            return forced

        try:
            forced = self._monitor.until_gone(step, overdue_outcome)
        except BaseException as error:
            write_end(attempt, Outcome("failed", "foreman", f"the foreman failed: {error!r}"), started)
            raise
        finally:
            end_step(step)
            kill_processes_of(attempt.folder)
            self._sweep(allocation)
        told = f"srun ended with {step.returncode}{srun_complaint(attempt)}; see {attempt.logs}/srun.log"
        # The coordinator knows most, then this foreman; else the first failure is the cause.
        outcome = Outcome.written(attempt) or forced or cause(attempt, told)
        outcome = self._grace_period.named(attempt, outcome)
        write_end(attempt, outcome, started)
        return outcome

    def _describe(self, paths: RunPaths, limits: Limits) -> None:
        """Describes the attempt, which resumes from the newest whole checkpoint. Ranks that stand by begin at that."""
        newest = checkpoint_folder(paths).newest_valid()
        for problem in newest.problems if newest else ():
            self._progress.say(f"skipped: {problem}")
        describe(
            self.paths,
            self._plan,
            (),
            newest.path if newest else None,
            serial=False,
            job=self._job,
            start_seconds=limits.start,
            last_checkpoint_seconds=limits.last_checkpoint,
        )

    def _sweep(self, allocation: Allocation) -> None:
        if self._monitor.was_up:
            return
        problem = sweep_nodes(self.paths, self._job, allocation)
        if problem:
            self._progress.say(f"shared memory of ranks that were killed at their start may be left: {problem}")


class StepAbort:
    """Notices that Slurm has ended a part of the step, whose ranks then leave no file.

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
        """The outcome that ends the other ranks, once the time to be told why is over."""
        if self._since is None and self._has_grown() and ABORTED in (self._looks.text(self._log) or ""):
            self._since = time.monotonic()
        if self._since is None or time.monotonic() < self._since + self._patience:
            return None
        return Outcome("failed", PART_ENDED, f"Slurm has ended a part of the step; see {self._log}")

    def _has_grown(self) -> bool:
        size = self._looks.look(self._log, lambda: self._log.stat().st_size, self._size)
        before, self._size = self._size, size
        return size > before
