"""Ranks of a job's next attempt that are started in advance and stand by, so that a restart need not wait for Python.

They are a step of their own beside the one that trains, so Slurm binds, accounts and ends them like any other. Their
MPI has started, everything is loaded, and what `standing_by` waits for is the description of their attempt.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from srlhpc.data.forgiving import Forgiving, patiently
from srlhpc.launch.attempt import describe
from srlhpc.launch.node_sweep import sweep_here, sweep_nodes
from srlhpc.launch.rank_script import rank_program
from srlhpc.launch.srun_step import ABORTED, end_step, srun_complaint, start_step
from srlhpc.runs.failures import failures, read_ends
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import STANDBY, kill_processes_of
from srlhpc.runs.progress import ProgressLine
from srlhpc.slurm.allocation import Allocation

if TYPE_CHECKING:
    from srlhpc.plan.plan import Plan


_LOOK_SECONDS = 1.0
_SCRIPTS_SECONDS = 10.0
"""How long the scripts around the ranks may take to end them after TERM, before Slurm kills all (KillWait)."""


class StandingBy(NamedTuple):
    """An attempt that has not begun, and the step of its ranks."""

    attempt: AttemptPaths
    step: subprocess.Popen[bytes]


class Standby:
    """The ranks that stand by for a job, if any do.

    Args:
        paths: the run.
        job: the job's id.
        plan: who does what.
        allocation: the components of the job.
        plugin: for `srun --mpi`.
        start_seconds: how long their start may take.
        progress: where it is reported that they have gone.
        is_wanted: by the profile.
    """

    def __init__(
        self,
        paths: RunPaths,
        job: str,
        plan: Plan,
        allocation: Allocation,
        plugin: str,
        *,
        start_seconds: float,
        progress: ProgressLine,
        is_wanted: bool,
    ) -> None:
        self._paths, self._job, self._plan = paths, job, plan
        self._allocation, self._plugin = allocation, plugin
        self._start_seconds, self._progress = start_seconds, progress
        self._is_wanted, self._has_failed = is_wanted, False
        self._waiting: StandingBy | None = None
        self._deadline = self._looked_at = 0.0
        self._looks = Forgiving()

    def tend(self, *, trains: bool) -> None:
        """Starts them when the attempt before them trains, for until then it needs the CPUs; ends them if one is lost.

        Args:
            trains: whether it does.
        """
        if self._waiting is None:
            if trains and self._is_wanted and not self._has_failed:
                try:
                    self._start()
                except OSError as error:
                    # On a full disk training must go on.
                    self._has_failed = True
                    self._progress.say(f"no ranks stand by for a restart: {error}")
        elif time.monotonic() > self._looked_at + _LOOK_SECONDS and (problem := self._problem(self._waiting)):
            self._has_failed = True
            self.end()
            self._progress.say(f"no ranks stand by for a restart: {problem}")

    def take(self) -> StandingBy | None:
        """The ranks that stand by; None if others must be started. They begin when their attempt is described.

        Ranks that are still loading are taken, too: they are further than others would be.
        """
        waiting, self._has_failed = self._waiting, False
        if waiting is None or self._problem(waiting):
            self.end()
            return None
        self._waiting = None
        # From here on the folder is that of an attempt.
        patiently(waiting.attempt.standby, waiting.attempt.standby.unlink)
        return waiting

    def forbid(self) -> None:
        """Starts no others in this job."""
        self._is_wanted = False

    def end(self) -> None:
        """Ends the ranks that stand by, and removes every trace."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        was_ready = self._looks.exists(waiting.attempt.ready)
        if self._slurm_ends(waiting):
            # The scripts around the ranks are at it, and remove what MPI has in /dev/shm.
            with contextlib.suppress(subprocess.TimeoutExpired):
                waiting.step.wait(timeout=_SCRIPTS_SECONDS)
        end_step(waiting.step)
        kill_processes_of(waiting.attempt.folder)
        if not was_ready:
            self._sweep(waiting.attempt)
        with contextlib.suppress(OSError):
            self._paths.remove(waiting.attempt)

    def _sweep(self, attempt: AttemptPaths) -> None:
        # After TERM Slurm starts no more steps, and the scripts around the ranks have done it, if nobody killed them.
        is_over = self._looks.exists(attempt.terminated)
        if is_over or sweep_nodes(attempt, self._job, self._allocation):
            sweep_here(attempt, self._job)

    def _start(self) -> None:
        attempt = self._paths.attempt(self._paths.attempt_numbers()[-1] + 1)
        # Everybody who sees a folder of that name must see that it is no attempt yet.
        aside = AttemptPaths(attempt.folder.with_name(f".{attempt.folder.name}.{STANDBY}"))
        for old in (aside, attempt):
            self._paths.remove(old)
        aside.make()
        describe(
            aside,
            self._plan,
            (),
            None,
            serial=False,
            job=self._job,
            start_seconds=self._start_seconds,
            stands_by=True,
        )
        aside.folder.rename(attempt.folder)
        program = [*rank_program(attempt), STANDBY]
        step = start_step(attempt, self._plan.ranks, program, self._allocation, self._plugin, stand_by=True)
        self._waiting = StandingBy(attempt, step)
        self._deadline = time.monotonic() + self._start_seconds

    def _is_aborted(self, attempt: AttemptPaths) -> bool:
        return ABORTED in (self._looks.text(attempt.logs / "srun.log") or "")

    def _slurm_ends(self, waiting: StandingBy) -> bool:
        """Whether Slurm has sent TERM to their step, or is about to."""
        return self._looks.exists(waiting.attempt.terminated) or self._is_aborted(waiting.attempt)

    def _problem(self, waiting: StandingBy) -> str | None:
        """Why the ranks that stand by cannot take over; None if they can, or will."""
        self._looked_at = time.monotonic()
        attempt = waiting.attempt
        # Files of ranks before srun's status: they say why.
        if ends := read_ends(attempt, looks=self._looks):
            first = next(iter(failures(attempt, ends)), None)
            return first.line if first else "one has left"
        if waiting.step.poll() is not None:
            return f"srun ended with {waiting.step.returncode}{srun_complaint(attempt)}"
        if self._is_aborted(attempt):
            return "Slurm has ended a part of their step"
        if self._looks.exists(attempt.terminated):
            return "Slurm has sent them TERM"
        if not self._looks.exists(attempt.ready) and time.monotonic() > self._deadline:
            return f"they were not ready after {self._start_seconds:.0f} s"
        return None
