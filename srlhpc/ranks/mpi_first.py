"""Runs a module with MPI started before anything else is loaded: `python -m srlhpc.ranks.mpi_first MODULE ARGUMENT...`

Over UCX, MPICH publishes 4 KiB for each rank through PMI: its address, and whatever lies behind it in memory, zeros
compressed. Slurm's PMI2 (seen in 22.05) breaks on requests over a kilobyte, so that a start over several nodes hangs or
fails where that memory is full of other things. In a process that has just begun it is not.
"""

from __future__ import annotations

import importlib
import os
import sys

from srlhpc.comm.mpi.library import init_mpi
from srlhpc.comm.mpi.networks import is_started_by_slurm


def main() -> int:
    """Runs `main(arguments)` of the module that the command line names; returns its exit code."""
    module, *arguments = sys.argv[1:]
    if is_started_by_slurm(os.environ):
        # This rank has not been bound to its GPUs yet, and MPI is never given memory of theirs.
        os.environ.setdefault("MPIR_CVAR_ENABLE_GPU", "0")
        init_mpi()
    code: int = importlib.import_module(module).main(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
