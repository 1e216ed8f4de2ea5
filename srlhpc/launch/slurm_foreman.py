"""One restart of a Slurm job at work on a run: attempts one after the other, until it is decided otherwise.

crash                        -> new attempt from the newest whole checkpoint, in the same allocation
announced or used-up end     -> back into the queue, or the end; see `decide`
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.errors import ClusterError, UserError
from srlhpc.launch.grace_period import GracePeriod
from srlhpc.launch.monitor import Limits
from srlhpc.launch.node_sweep import sweep_nodes
from srlhpc.launch.requeue import refusal, requeue
from srlhpc.launch.restart_policy import AttemptEnd, Decision, decide, is_endless, pause_seconds
from srlhpc.launch.signals import JobSignals
from srlhpc.launch.slurm_attempt import PART_ENDED, SlurmAttempt
from srlhpc.launch.standby import Standby
from srlhpc.launch.waiting_for_room import EndedFirst, WaitingForRoom
from srlhpc.runs.checkpoints import all_checkpoints, last_checkpoint
from srlhpc.runs.crash_loop import LATELY_SECONDS
from srlhpc.runs.earlier_jobs import cancelled_jobs, close_lost_attempt, ended_before
from srlhpc.runs.failures import first_kind
from srlhpc.runs.lease import Lease
from srlhpc.runs.outcome import Outcome, amend_end, summary
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.progress import ProgressLine
from srlhpc.runs.slurm_output import out_of_memory, slurm_output
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.jobs import has_lost_components, limit_minutes
from srlhpc.slurm.node_order import nodes_of_components, order_warning
from srlhpc.slurm.srun import srun_plugin
from srlhpc.specs.cluster import ClusterProfile

if TYPE_CHECKING:
    from srlhpc.plan.plan import Plan


_TOLD_SECONDS = 20.0
"""Seconds within which Slurm sends TERM to the foreman of a job that it ends."""


class SlurmForeman:
    """One restart of a job.

    Args:
        paths: the run.
        job: the job's id.
        signals: caught.
        limits: how long to wait; None: as the cluster's profile says.
    """

    def __init__(self, paths: RunPaths, job: str, signals: JobSignals, limits: Limits | None = None) -> None:
        self._paths, self._job, self._signals = paths, job, signals
        self._lease = Lease(paths.lease, job)
        self._progress = ProgressLine(sys.stderr)
        written = read_json(paths.slurm) or {}
        self._jobs = written["jobs"]
        self._cluster = ClusterProfile.model_validate(written["cluster"])
        self._limits = limits or _limits(self._cluster)
        self._allocation = Allocation.from_json(written["allocation"])
        self._grace_period = GracePeriod(
            paths,
            job,
            signals,
            lead_seconds=self._cluster.signal_lead_seconds,
            limit_seconds=60.0 * self._allocation.minutes,
            is_cancelled=self._is_cancelled,
            progress=self._progress,
            ask_minutes=lambda: limit_minutes(job),
        )
        self._room = WaitingForRoom(paths.folder, signals, self._progress)
        self._keeps_run = False

    def work(self) -> Outcome:
        """Runs attempts until one decides otherwise; returns how the last one ended."""
        numbers = self._paths.attempt_numbers()
        try:
            self._room(lambda: self._lease.take_within(60.0, numbers[-1] + 1 if numbers else 1))
        except EndedFirst:
            return self._leave_without_attempt()
        try:
            return self._work_alone()
        finally:
            # A job that is back in the queue keeps the run.
            if not self._keeps_run:
                self._lease.release()

    def _work_alone(self) -> Outcome:
        """Works while this process holds the lease, so that nobody else writes to the run."""
        lost = close_lost_attempt(self._paths, self._job)
        ended = ended_before(self._paths, self._job, self._jobs)
        if ended is not None:
            self._progress.say(f"job {self._job}: run {self._paths.name} is {ended.state} ({ended.reason}) already")
            return ended
        if self._is_cancelled():
            return self._leave_cancelled("cancelled")
        if lost is not None:
            job = (read_json(lost.attempt) or {}).get("job", self._job)
            sweep_nodes(lost, job, self._allocation)
        return self._attempts()

    def _is_cancelled(self) -> bool:
        """Whether `srlhpc cancel` has marked this job."""
        return self._job in cancelled_jobs(self._paths)

    def _leave_cancelled(self, what: str) -> Outcome:
        """Ends the run for good, and amends the end of the last attempt, which may have been to be continued."""
        outcome = self._cancelled(what)
        self._amend(outcome)
        return self._leave(outcome, "end")

    def _cancelled(self, what: str) -> Outcome:
        return Outcome("interrupted", "cancelled", f"{what}; {last_checkpoint(self._paths)}")

    def _amend(self, outcome: Outcome) -> None:
        if last := self._paths.last_attempt():
            amend_end(last, outcome)

    def _attempts(self) -> Outcome:
        try:
            plan, plugin = self._plan(), srun_plugin(self._cluster)
        except (UserError, ClusterError):
            # The end of the job also ends the processes that plan and ask MPI: their failure is not the cause.
            if not self._signals.any:
                raise
            return self._leave_without_attempt()
        if warning := order_warning(plugin, nodes_of_components(os.environ)):
            self._progress.say(warning)
        standby = Standby(
            self._paths,
            self._job,
            plan,
            self._allocation,
            plugin,
            start_seconds=self._limits.start,
            progress=self._progress,
            is_wanted=self._cluster.standby and self._cluster.restarts_in_place > 0,
        )
        try:
            return self._attempts_of(plan, plugin, standby)
        finally:
            standby.end()

    def _attempts_of(self, plan: Plan, plugin: str, standby: Standby) -> Outcome:
        first = before = self._updates()
        restarts, restarted_at = 0, list[float]()
        while not self._signals.any:
            try:
                attempt = self._room(lambda: self._new_attempt(plan, standby))
                outcome = attempt.run(self._allocation, plugin, self._room)
            except EndedFirst:
                break
            if out_of_memory(slurm_output(self._paths, attempt.paths)):
                standby.forbid()
            # Restarts count no more once training has got further.
            restarts, before = (0 if self._updates() > before else restarts), self._updates()
            restarted_at = [at for at in restarted_at if time.monotonic() < at + LATELY_SECONDS]
            situation = self._situation(attempt.paths, outcome, restarts, len(restarted_at), got_further=before > first)
            decision = decide(situation)
            if decision != "restart":
                standby.end()
                return self._leave(self._endless(outcome, situation), decision)
            if self._has_lost_a_component(outcome):
                standby.end()
                return self._leave_cancelled(f"a component of job {self._job} was cancelled")
            self._progress.say(f"{outcome.message}; starting the ranks again, {last_checkpoint(self._paths)}")
            self._pause(pause_seconds(restarts))
            restarts += 1
            restarted_at.append(time.monotonic())
        return self._leave_without_attempt()

    def _endless(self, outcome: Outcome, situation: AttemptEnd) -> Outcome:
        """The outcome, with a message of its own for ranks that crash again and again."""
        if outcome.state != "failed" or not is_endless(situation):
            return outcome
        crashes = situation.restarts_lately + 1
        message = (
            f"ranks crashed {crashes} times within {LATELY_SECONDS / 60:.0f} min, the last time: {outcome.message}"
        )
        outcome = replace(outcome, message=message)
        self._amend(outcome)
        return outcome

    def _new_attempt(self, plan: Plan, standby: Standby) -> SlurmAttempt:
        return SlurmAttempt(
            self._paths,
            self._job,
            plan,
            self._lease,
            self._grace_period,
            standby,
            progress=self._progress,
            limits=self._limits,
        )

    def _has_lost_a_component(self, outcome: Outcome) -> bool:
        """Whether a component of the job was cancelled by itself; if the whole job ends, the foreman is told soon."""
        parts = len(self._allocation.components)
        if parts < 2 or not has_lost_components(self._job, parts):
            return False
        if outcome.reason != PART_ENDED:
            self._pause(_TOLD_SECONDS)
        return not self._signals.any

    def _leave_without_attempt(self) -> Outcome:
        """The end was announced while nothing ran: there is nothing to write."""
        ends = self._signals.terminated_at is not None or not self._cluster.requeue
        announced = Outcome("interrupted", "signal", f"announced while nothing ran; {last_checkpoint(self._paths)}")
        return self._leave(announced, "end" if ends else "requeue")

    def _plan(self) -> Plan:
        from srlhpc.launch.preparation import prepare_again
        from srlhpc.specs.load import load_experiment

        spec = load_experiment(self._paths.spec)
        return prepare_again(spec, self._allocation, self._paths.spec, self._paths.name)

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._signals.any:
            time.sleep(0.1)

    def _situation(
        self, attempt: AttemptPaths, outcome: Outcome, restarts: int, lately: int, *, got_further: bool
    ) -> AttemptEnd:
        return AttemptEnd(
            outcome,
            first_kind(attempt),
            warned=self._grace_period.was_announced(attempt),
            terminated=self._signals.terminated_at is not None,
            restarts=restarts,
            restarts_allowed=self._cluster.restarts_in_place,
            restarts_lately=lately,
            may_requeue=self._cluster.requeue,
            got_further=got_further,
        )

    def _updates(self) -> int:
        """Updates in the newest checkpoint; -1 if there is none."""
        files = all_checkpoints(self._paths)
        return updates_of(files[-1]) if files else -1

    def _leave(self, outcome: Outcome, decision: Decision) -> Outcome:
        if decision == "requeue":
            before, outcome = outcome, self._requeue(outcome)
            if outcome != before:
                self._amend(outcome)
        self._progress.say(summary(self._paths, outcome, self._progress.standing))
        return outcome

    def _requeue(self, outcome: Outcome) -> Outcome:
        """Puts the job back into the queue; the outcome has the reason if that was not possible or not right."""
        if self._is_cancelled():
            return self._cancelled("cancelled")
        if refused := refusal(self._job, self._cluster, os.environ):
            return replace(outcome, message=f"{outcome.message}; {refused}")
        self._progress.say(f"requeueing job {self._job} ({outcome.reason}); {last_checkpoint(self._paths)}")
        instead = requeue(self._job, self._signals)
        self._keeps_run = instead is None
        return instead or outcome


def _limits(cluster: ClusterProfile) -> Limits:
    return Limits(
        start=cluster.start_seconds, last_checkpoint=max(Limits.last_checkpoint, float(cluster.signal_lead_seconds))
    )
