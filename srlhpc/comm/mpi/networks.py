"""The networks that MPI is told to use; whatever the user has set stays. Free of MPI."""

from __future__ import annotations

from collections.abc import Mapping

_NETWORK_VARIABLES = ("UCX_TLS", "MPIR_CVAR_CH4_NETMOD", "FI_PROVIDER")
"""Variables by which users choose a network; where one is set, nothing is changed."""


def is_started_by_slurm(environment: Mapping[str, str]) -> bool:
    """Whether Slurm's PMI starts this process."""
    return "SLURM_STEP_ID" in environment and "PMI_FD" in environment


def settings_within_a_node(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to set for ranks that are all on one machine: to look for networks takes each 0.3 s if 128 start."""
    return {} if _has_choice(environment) else {"UCX_TLS": "posix,self"}


def transport_settings(library: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to set for this MPI library under this launcher.

    With cross-memory attach, a sender that dies in the middle of a message takes the receiver with it. Under Slurm's
    PMI, MPICH's address must be short as well (see `srlhpc.ranks.mpi_first`): few transports. Over libfabric it would
    be shorter still, but there one rank's death stops those that exchange messages with it.

    Args:
        library: what `MPI.Get_library_version()` says.
        environment: of this process.
    """
    if _has_choice(environment):
        return {}
    return {"UCX_TLS": "tcp,posix,self" if "MPICH" in library and is_started_by_slurm(environment) else "^cma"}


def _has_choice(environment: Mapping[str, str]) -> bool:
    return any(name in environment for name in _NETWORK_VARIABLES)
