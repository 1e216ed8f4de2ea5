"""The network layer under MPI, chosen just before MPI starts; whatever the user has set stays."""

from __future__ import annotations

from collections.abc import Mapping

_OURS = ("UCX_TLS", "MPIR_CVAR_CH4_NETMOD", "FI_PROVIDER")


def transport_settings(library: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to set for this MPI library under this launcher.

    Slurm's PMI2 (seen in 22.05) reads a request of MPICH in pieces when it is longer than a kilobyte and then refuses
    the rest. Over UCX MPICH publishes 4 KiB of address, padded with whatever lies behind it in memory, so that requests
    are too long on some starts and not on others: `MPI_Init` hangs, or fails in `addr_exchange`. Over libfabric an
    address has a few bytes. A site with a faster network than TCP names its provider: `export FI_PROVIDER=verbs`.

    With cross-memory attach, a sender that dies in the middle of a message takes the receiver with it.

    Args:
        library: what `MPI.Get_library_version()` says.
        environment: of this process.
    """
    if any(name in environment for name in _OURS):
        return {}
    by_slurm = "SLURM_STEP_ID" in environment and "PMI_FD" in environment
    if by_slurm and "MPICH" in library and "ucx ofi" in library:
        return {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
    return {"UCX_TLS": "^cma"}
