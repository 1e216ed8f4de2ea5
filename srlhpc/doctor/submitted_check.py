"""Submits a check's job, waits for it, and takes care that it does not stay."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from srlhpc.data.atomic import read_json
from srlhpc.doctor.check_job import CheckJob, batch_text
from srlhpc.doctor.local_check import STEP_SECONDS
from srlhpc.doctor.reports import RankReport, WorkFolder, last_line, read_reports
from srlhpc.errors import ClusterError, counted
from srlhpc.launch.submission import submitted_id
from srlhpc.slurm.commands import SlurmRefused, run_slurm
from srlhpc.slurm.jobs import JobState, ended_job, queued_jobs

_POLL_SECONDS = 0.5
_RUN_SECONDS = STEP_SECONDS + 90.0
_GONE_SECONDS = 40.0
_LEAVING_SECONDS = 5.0

End = Literal["refused", "waits", "ended", "overdue", "lost"]


@dataclass(frozen=True)
class JobReport:
    """What became of the job."""

    end: End
    """waits: still pending, and cancelled; overdue: it ran for too long; lost: Slurm no longer answers."""
    job: str = ""
    reason: str = ""
    """Slurm's words: on a refusal, or why it waits."""
    state: str = ""
    """Slurm's word for an ended job."""
    nodes: str = ""
    requeue: bool | None = None
    """Whether Slurm may put it back into the queue; None: not seen."""
    batch: dict[str, Any] | None = None
    """What the batch script wrote down; None if it did not get so far."""
    batch_output: str = ""
    """The last line that it printed."""
    srun_output: str = ""
    ranks: tuple[RankReport, ...] = ()


class SubmittedCheck:
    """One job, from sbatch until it is gone.

    Args:
        job: what to submit.
        work: an empty folder that the nodes see.
        wait_seconds: how long it may be pending.
        say: for people who wait.
    """

    def __init__(self, job: CheckJob, work: WorkFolder, wait_seconds: float, say: Callable[[str], None]) -> None:
        self._job, self._work, self._wait, self._say = job, work, wait_seconds, say
        self._id = ""

    def run(self) -> JobReport:
        """Submits, waits, and ends the job whatever happens.

        Raises:
            ClusterError: Slurm does not take it because it does not answer, or does not say the job's number.
        """
        more = {
            "cluster": self._job.cluster.model_dump(mode="json"),
            "allocation": self._job.allocation.to_json(),
            "step_seconds": STEP_SECONDS,
        }
        self._work.make(self._job.ranks, more)
        script = self._work.slurm / "script.sh"
        script.write_text(batch_text(self._job, self._work))
        try:
            output = run_slurm(["sbatch", "--parsable", str(script)]).stdout
        except SlurmRefused as error:
            return JobReport("refused", reason=str(error))
        self._id = submitted_id(output)
        nodes = counted(sum(component.nodes for component in self._job.allocation.components), "node")
        ranks = counted(len(self._job.ranks), "rank")
        self._say(f"job {self._id}: {ranks} on {nodes}; it may wait {self._wait:g} s")
        try:
            return self._until_it_ends()
        finally:
            self._end()

    def _until_it_ends(self) -> JobReport:
        requeue = self._may_requeue()
        deadline, runs = time.monotonic() + self._wait, False
        state = None
        while read_json(self._work.batch) is None:
            try:
                state = queued_jobs([self._id]).get(self._id)
            except ClusterError as error:
                return JobReport("lost", self._id, reason=str(error).splitlines()[0])
            if state is None or not state.is_active:
                break
            if not runs and state.has_begun:
                runs, deadline = True, time.monotonic() + _RUN_SECONDS
            if time.monotonic() > deadline:
                return JobReport("overdue" if runs else "waits", self._id, state.reason, requeue=requeue)
            time.sleep(_POLL_SECONDS)
        return self._report(state, requeue)

    def _report(self, state: JobState | None, requeue: bool | None) -> JobReport:
        batch = read_json(self._work.batch)
        with contextlib.suppress(ClusterError):
            state = state if batch is not None else (ended_job(self._id) or state)
        logs = sorted(self._work.slurm.glob("*.err"))
        return JobReport(
            "ended",
            self._id,
            state=state.state if state else "",
            nodes=state.nodes if state else "",
            requeue=requeue,
            batch=batch,
            batch_output=last_line(logs[0]) if logs else "",
            srun_output=last_line(self._work.attempt.logs / "srun.log"),
            ranks=tuple(read_reports(self._work)),
        )

    def _may_requeue(self) -> bool | None:
        with contextlib.suppress(ClusterError):
            output = run_slurm(["scontrol", "show", "job", "-o", self._id]).stdout
            return " Requeue=1 " in output
        return None

    def _end(self) -> None:
        """Cancels the job if it does not end by itself, and waits until its nodes are free."""
        began = time.monotonic()
        patience = _LEAVING_SECONDS if self._work.batch.exists() else 0.0
        asked = False
        while time.monotonic() < began + _GONE_SECONDS:
            with contextlib.suppress(ClusterError):
                state = queued_jobs([self._id]).get(self._id)
                if state is None or not state.is_active:
                    return
            if not asked and time.monotonic() >= began + patience:
                with contextlib.suppress(ClusterError):
                    run_slurm(["scancel", self._id])
                    asked = True
            time.sleep(0.2)
