"""MPI's start, and the transports that it is told to use; whatever the user has set stays."""

from __future__ import annotations

import os
from collections.abc import Mapping

from srlhpc.comm.mpi_library import MPI

_OURS = ("UCX_TLS", "MPIR_CVAR_CH4_NETMOD", "FI_PROVIDER")


def begin_mpi() -> None:
    """Starts MPI in this process, if it has not started."""
    if not MPI.Is_initialized():
        os.environ.update(transport_settings(MPI.Get_library_version(), os.environ))
        MPI.Init_thread(MPI.THREAD_FUNNELED)


def is_started_by_slurm(environment: Mapping[str, str]) -> bool:
    """Whether Slurm's PMI starts this process."""
    return "SLURM_STEP_ID" in environment and "PMI_FD" in environment


def transport_settings(library: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to set for this MPI library under this launcher.

    With cross-memory attach, a sender that dies in the middle of a message takes the receiver with it. Under Slurm's
    PMI, MPICH's address must be short as well (see `srlhpc.launch.mpi_first`): few transports. Over libfabric it would
    be shorter still, but there one rank's death stops those that exchange messages with it.

    Args:
        library: what `MPI.Get_library_version()` says.
        environment: of this process.
    """
    if any(name in environment for name in _OURS):
        return {}
    return {"UCX_TLS": "tcp,posix,self" if "MPICH" in library and is_started_by_slurm(environment) else "^cma"}
