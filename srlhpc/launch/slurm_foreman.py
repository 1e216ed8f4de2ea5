"""The foreman on Slurm: the one small process that a job's batch script runs, under submitit."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from srlhpc.launch.job_shift import JobShift
from srlhpc.launch.job_signals import JobSignals
from srlhpc.launch.rundir import RunPaths
from srlhpc.objects import ClusterError


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
        outcome = JobShift(RunPaths(Path(self._folder)), os.environ["SLURM_JOB_ID"], signals).work()
        if outcome.state == "failed":
            raise RunFailed(outcome.message)
        return {"state": outcome.state, "reason": outcome.reason, "message": outcome.message}


if __name__ == "__main__":
    SlurmForeman(sys.argv[1])()
