"""The foreman on Slurm: the one small process that a job's batch script runs, under submitit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from srlhpc.errors import ClusterError, UserError
from srlhpc.launch.signals import JobSignals
from srlhpc.launch.slurm_foreman import SlurmForeman
from srlhpc.runs.paths import RunPaths
from srlhpc.slurm.batch_mark import FOREMAN


class SubmittedForeman:
    """What submitit runs in the batch script.

    Args:
        folder: the run's.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self) -> dict[str, str]:
        """Trains until the run or the job ends; returns how.

        Raises:
            SystemExit: the run failed, which has been said. submitit passes it on without a traceback, and the job
                counts as failed.
        """
        signals = JobSignals()
        signals.catch()
        try:
            outcome = SlurmForeman(RunPaths(Path(self._folder)), os.environ["SLURM_JOB_ID"], signals).work()
        except (UserError, ClusterError) as error:
            sys.stderr.write(f"{FOREMAN}{error}\n")
            raise SystemExit(2 if isinstance(error, UserError) else 3) from None
        if outcome.state == "failed":
            raise SystemExit(1)
        return {"state": outcome.state, "reason": outcome.reason, "message": outcome.message}


if __name__ == "__main__":
    SubmittedForeman(sys.argv[1])()
