"""MPI's start in this process."""

from __future__ import annotations

import os

from srlhpc.comm.mpi_library import MPI
from srlhpc.comm.networks import transport_settings


def begin_mpi() -> None:
    """Starts MPI in this process, if it has not started."""
    if not MPI.Is_initialized():
        os.environ.update(transport_settings(MPI.Get_library_version(), os.environ))
        MPI.Init_thread(MPI.THREAD_FUNNELED)
