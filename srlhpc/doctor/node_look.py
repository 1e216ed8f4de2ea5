"""Writes down what the machine of one rank is like, before MPI starts there."""

from __future__ import annotations

import sys
from pathlib import Path

from srlhpc.comm.mpi.library import MPI
from srlhpc.doctor.binding import bind_gpus
from srlhpc.doctor.machine import machine_facts
from srlhpc.doctor.reports import Stages, WorkFolder


def main(folder: str) -> None:
    """Looks around for this process's rank of the check in a folder."""
    work = WorkFolder(Path(folder))
    here = work.this_rank()
    # A job that was requeued finds what it wrote the first time.
    work.report(here.rank).unlink(missing_ok=True)
    stages = Stages(work.report(here.rank))
    try:
        gpus = bind_gpus(work, here.rank)
        stages.enter("start", host=machine_facts(work.folder) | gpus, library=MPI.Get_library_version().strip(" \0\n"))
    except Exception as error:
        stages.enter("start", error=str(error) or type(error).__name__)
        raise
    stages.enter("the start of MPI")


if __name__ == "__main__":
    main(sys.argv[1])
