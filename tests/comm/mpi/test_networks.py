"""Which network layer MPI is told to take."""

from __future__ import annotations

import pytest

from srlhpc.comm.mpi.networks import transport_settings

WHEEL = "MPICH Version: 5.0.2\nMPICH Device: ch4:ucx ofi\n"
SITE = "MPICH Version: 4.2.0\nMPICH Device: ch4:ucx\n"
SLURM = {"SLURM_STEP_ID": "0", "PMI_FD": "9"}


@pytest.mark.parametrize(
    ("library", "environment", "transports"),
    [
        (WHEEL, SLURM, "tcp,posix,self"),
        (SITE, SLURM, "tcp,posix,self"),
        (WHEEL, {"PMI_FD": "9"}, "^cma"),
        ("Open MPI v5.0.11", SLURM, "^cma"),
    ],
)
def test_transports_have_short_addresses_for_slurms_pmi_and_no_cross_memory_attach(
    library: str, environment: dict[str, str], transports: str
) -> None:
    assert transport_settings(library, environment) == {"UCX_TLS": transports}


@pytest.mark.parametrize("own", [{"UCX_TLS": "rc,self"}, {"FI_PROVIDER": "verbs"}, {"MPIR_CVAR_CH4_NETMOD": "ucx"}])
def test_what_the_user_has_set_stays(own: dict[str, str]) -> None:
    assert transport_settings(WHEEL, SLURM | own) == {}
