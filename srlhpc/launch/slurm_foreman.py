"""The foreman on Slurm: the one small process that a job's batch script runs.

It starts the ranks with one srun, watches them, starts them again after a crash, and when the end of the job is
announced gets a checkpoint from the coordinator before it puts the job back into the queue.

announced (USR1, USR2 at the foreman; TERM at the ranks only)  -> checkpoint, then requeue through submitit
ended (TERM, INT at the foreman: cancelled, limit reached)     -> checkpoint, then end; Slurm or the user decides
crash                                                          -> new attempt from the newest whole checkpoint
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srlhpc.data.atomic import read_json
from srlhpc.launch.allocation import Allocation
from srlhpc.launch.ending import Outcome, cause, last_checkpoint, summary, write_end
from srlhpc.launch.job_signals import JobSignals
from srlhpc.launch.jobs import component_states
from srlhpc.launch.lease import Lease
from srlhpc.launch.local import rank_program
from srlhpc.launch.next_step import NextStep, Situation, next_step, pause_seconds
from srlhpc.launch.node_order import nodes_of_components, order_warning
from srlhpc.launch.processes import kill_processes_of
from srlhpc.launch.progress_line import ProgressLine
from srlhpc.launch.rundir import AttemptPaths, RunPaths
from srlhpc.launch.slurm import run_slurm
from srlhpc.launch.srun_step import end_step, srun_plugin, start_step
from srlhpc.launch.watching import AttemptWatch, Limits
from srlhpc.objects import ClusterError, UserError
from srlhpc.specs.cluster import ClusterProfile

if TYPE_CHECKING:
    from srlhpc.launch.ranks import Plan

_REQUEUE_SECONDS = 5.0
"""Of the lead time, kept for the requeue itself."""
_END_SECONDS = 25.0
"""For a checkpoint after TERM: Slurm kills after KillWait, 30 s by default."""


_EARLY_SECONDS = 60.0
"""Slurm may send its signal that much before it is due."""


class RunFailed(ClusterError):
    """The run failed; raised at the end of the batch script so that the job counts as failed."""


class SlurmForeman:
    """What submitit runs in the batch script.

    Args:
        folder: the run's.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def checkpoint(self) -> Any:
        """Called by submitit just before it requeues the job: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    def __call__(self) -> dict[str, str]:
        """Trains until the run or the job ends; returns how.

        Raises:
            RunFailed: the run failed.
        """
        signals = JobSignals()
        signals.catch()
        job = os.environ["SLURM_JOB_ID"]
        shift = JobShift(RunPaths(Path(self._folder)), job, signals)
        outcome = shift.work()
        if outcome.state == "failed":
            raise RunFailed(outcome.message)
        return {"state": outcome.state, "reason": outcome.reason, "message": outcome.message}


class JobShift:
    """One incarnation of a job at work on a run: a sequence of attempts.

    Args:
        paths: the run.
        job: the job's id.
        signals: caught.
        limits: how long to wait.
    """

    def __init__(self, paths: RunPaths, job: str, signals: JobSignals, limits: Limits | None = None) -> None:
        self._paths, self._job, self._signals = paths, job, signals
        self._limits = limits or Limits()
        self._lease = Lease(paths.lease, job)
        self._progress = ProgressLine(sys.stderr)
        written = read_json(paths.slurm) or {}
        self._jobs = written["jobs"]
        self._cluster = ClusterProfile.model_validate(written["cluster"])
        self._allocation = Allocation.from_json(written["allocation"])
        self._began = time.time()
        self._requeued = False
        self._limit_seconds = 60.0 * self._allocation.minutes

    def work(self) -> Outcome:
        """Attempts until it is decided otherwise."""
        self._close_lost_attempt()
        ended = self._ended_before()
        if ended is not None:
            self._progress.say(f"job {self._job}: run {self._paths.name} is {ended.state} ({ended.reason}) already")
            return ended
        numbers = self._paths.attempt_numbers()
        self._take_lease(numbers[-1] + 1 if numbers else 1)
        try:
            return self._attempts()
        finally:
            # A job that is back in the queue keeps the run.
            if not self._requeued:
                self._lease.release()

    def _take_lease(self, number: int, within_seconds: float = 60.0) -> None:
        """Waits a little for a job that this one follows and that is just leaving."""
        deadline = time.monotonic() + within_seconds
        while True:
            try:
                return self._lease.take(number)
            except UserError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1.0)

    def _ended_before(self) -> Outcome | None:
        """How an earlier job has ended the run for good; None if there is something left to do."""
        last = self._paths.last_attempt()
        end = (read_json(last.end) if last else None) or {}
        submitted = max((job["submitted"] for job in self._jobs if str(job["id"]) == self._job), default=0.0)
        # A job that was submitted after the end is to extend the run.
        if end.get("state") == "finished" and end.get("time", 0.0) > submitted:
            return Outcome(end["state"], str(end.get("reason", "")), str(end.get("message", "")))
        return None

    def _close_lost_attempt(self) -> None:
        """Writes the end of an attempt that was cut off with its foreman."""
        last = self._paths.last_attempt()
        if last and read_json(last.end) is None and (read_json(last.attempt) or {}).get("job"):
            outcome = Outcome.written(last) or Outcome(
                "interrupted", "requeued", f"everything was killed, the foreman included; job {self._job} goes on"
            )
            write_end(last, outcome, time.time())

    def _attempts(self) -> Outcome:
        made = self._plan()
        plugin = srun_plugin(self._cluster)
        if warning := order_warning(plugin, nodes_of_components(os.environ)):
            self._progress.say(warning)
        first = before = self._updates()
        restarts = 0
        while True:
            if self._signals.any:
                # Announced while nothing ran: there is nothing to write.
                return self._leave(Outcome("interrupted", "signal", last_checkpoint(self._paths)))
            attempt, outcome = self._attempt(made, plugin)
            restarts, before = (0 if self._updates() > before else restarts), self._updates()
            decision = next_step(self._situation(attempt, outcome, restarts, got_further=before > first))
            if decision != "restart":
                return self._leave(outcome, decision)
            self._progress.say(f"{outcome.message}; starting the ranks again, {last_checkpoint(self._paths)}")
            self._pause(pause_seconds(restarts))
            restarts += 1

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._signals.any:
            time.sleep(0.1)

    def _situation(self, attempt: AttemptPaths, outcome: Outcome, restarts: int, *, got_further: bool) -> Situation:
        return Situation(
            outcome,
            _first_kind(attempt),
            warned=self._signals.warned_at is not None or attempt.terminated.exists(),
            terminated=self._signals.terminated_at is not None,
            restarts=restarts,
            restarts_allowed=self._cluster.restarts_in_place,
            may_requeue=self._cluster.requeue,
            got_further=got_further,
        )

    # --- one attempt -------------------------------------------------------------------------------------------------

    def _plan(self) -> Plan:
        from srlhpc.launch.plan import plan
        from srlhpc.specs.load import load_experiment
        from srlhpc.specs.probe import probe_spaces

        spec = load_experiment(self._paths.spec)
        made = plan(spec, probe_spaces(spec.environment))
        if len(made.ranks) != self._allocation.ranks:
            raise UserError(
                f"{self._paths.spec} needs {len(made.ranks)} ranks, but the job was allocated for "
                f"{self._allocation.ranks}; was it changed after it was submitted? Go on: srlhpc resume "
                f"{self._paths.name}"
            )
        return made

    def _attempt(self, made: Plan, plugin: str) -> tuple[AttemptPaths, Outcome]:
        from srlhpc.data.checkpoint_folder import CheckpointFolder
        from srlhpc.launch.attempt import describe

        newest = CheckpointFolder(self._paths.checkpoints).newest_valid()
        for problem in newest.problems if newest else ():
            self._progress.say(f"skipped: {problem}")
        attempt = self._paths.new_attempt()
        self._lease.renew(attempt.number)
        describe(attempt, made, (), newest.path if newest else None, serial=False, job=self._job)
        started = time.time()
        watch = AttemptWatch(self._paths, attempt, self._lease, made.ranks, self._progress, self._limits)
        step = start_step(attempt, made.ranks, rank_program(attempt), self._allocation, plugin)
        try:
            forced = watch.until_gone(step, lambda: self._must_go(attempt))
        except BaseException as error:
            write_end(attempt, Outcome("failed", "foreman", f"the foreman failed: {error!r}"), started)
            raise
        finally:
            end_step(step)
            kill_processes_of(attempt.folder)
        told = f"srun ended with {step.returncode}; see {attempt.logs}/srun.log"
        outcome = Outcome.written(attempt) or forced or cause(attempt, told)
        if outcome.state == "interrupted":
            outcome = self._named(attempt, outcome)
        write_end(attempt, outcome, started)
        return attempt, outcome

    def _must_go(self, attempt: AttemptPaths) -> Outcome | None:
        """Asks for a checkpoint when the end is announced; ends the ranks when it does not come in time."""
        signals = self._signals
        if signals.warned_at is None and attempt.terminated.exists():
            signals.warned_at = time.monotonic()
        if not signals.any or attempt.outcome.exists():
            return None
        asked = attempt.folder / "asked"
        if not asked.exists():
            asked.touch()
            attempt.stop.touch()
            self._progress.say(
                f"the job is about to end: asking for a checkpoint; until now {last_checkpoint(self._paths)}"
            )
        lead = max(_REQUEUE_SECONDS, self._cluster.signal_lead_seconds - _REQUEUE_SECONDS)
        limits = [(signals.warned_at, lead), (signals.terminated_at, _END_SECONDS)]
        late = [seconds for since, seconds in limits if since is not None and time.monotonic() > since + seconds]
        if not late:
            return None
        message = f"no checkpoint within {late[0]:.0f} s of being asked; {last_checkpoint(self._paths)}"
        return Outcome("interrupted", "signal", message)

    def _named(self, attempt: AttemptPaths, outcome: Outcome) -> Outcome:
        """The reason of an interruption, as far as the foreman knows it."""
        by_slurm = attempt.terminated.exists()
        if self._signals.terminated_at is not None:
            if by_slurm:
                return Outcome(
                    "interrupted", "terminated", f"Slurm ended job {self._job}; {last_checkpoint(self._paths)}"
                )
            return Outcome("interrupted", "cancelled", f"cancelled; {last_checkpoint(self._paths)}")
        if self._signals.warned_at is None and not by_slurm:
            return Outcome("interrupted", "cancelled", outcome.message)
        return Outcome("interrupted", self._announced, outcome.message)

    @property
    def _announced(self) -> str:
        """Near the time limit it is the time limit; else somebody more important wants the nodes."""
        near = self._limit_seconds - self._cluster.signal_lead_seconds - _EARLY_SECONDS
        return "time_limit" if time.time() - self._began >= near else "preemption"

    def _updates(self) -> int:
        files = sorted(self._paths.checkpoints.glob("updates-*.h5"))
        return int(files[-1].stem.removeprefix("updates-")) if files else -1

    # --- leaving -----------------------------------------------------------------------------------------------------

    def _leave(self, outcome: Outcome, decision: NextStep | None = None) -> Outcome:
        if decision is None:
            terminated = self._signals.terminated_at is not None
            decision = "end" if terminated or not self._cluster.requeue else "requeue"
        if decision == "requeue":
            outcome = self._requeue(outcome)
        self._progress.say(summary(self._paths, outcome))
        return outcome

    def _requeue(self, outcome: Outcome) -> Outcome:
        """Puts the job back into the queue; returns only if that was not possible or not right."""
        try:
            states = component_states(self._job)
        except ClusterError as error:
            return Outcome("failed", "requeue", f"not requeued, Slurm does not answer: {error}")
        if self._signals.terminated_at is not None or set(states) != {"RUNNING"}:
            # Requeueing a job that was just cancelled would revive it.
            return Outcome(
                "interrupted", "terminated", f"not requeued: job {self._job} is {'/'.join(states) or 'gone'}"
            )
        self._progress.say(f"requeueing job {self._job} ({outcome.reason}); {last_checkpoint(self._paths)}")
        self._requeued = True
        try:
            if self._signals.requeue is not None:
                self._signals.requeue(signal.Signals[f"SIG{self._cluster.signal}"], None)
            else:
                run_slurm(["scontrol", "requeue", self._job])
        except Exception as error:
            self._requeued = False
            return Outcome("failed", "requeue", f"job {self._job} could not be requeued: {error}")
        return outcome


def _first_kind(attempt: AttemptPaths) -> str:
    """The kind of the failure that came first, as the rank wrote it."""
    written = [content for path in attempt.failures.glob("rank-*.json") if (content := read_json(path))]
    return str(min(written, key=lambda content: content.get("time", 0.0)).get("kind", "")) if written else ""


if __name__ == "__main__":
    SlurmForeman(sys.argv[1])()
