"""mpi4py, told to leave initialisation and finalisation to `join_world` and `finalize_or_exit`."""

from __future__ import annotations

import os

import mpi4py

from srlhpc.comm.mpi.networks import transport_settings

# Before MPI is imported from mpi4py, which would initialise it.
mpi4py.rc.initialize = False
mpi4py.rc.finalize = False

from mpi4py import MPI as MPI  # noqa: E402


def init_mpi() -> None:
    """Starts MPI in this process, if it has not started."""
    if not MPI.Is_initialized():
        # MPI reads the environment when it starts. Asking for its version is allowed before.
        os.environ.update(transport_settings(MPI.Get_library_version(), os.environ))
        MPI.Init_thread(MPI.THREAD_FUNNELED)
