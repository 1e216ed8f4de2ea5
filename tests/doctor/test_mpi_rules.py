"""Whether MPI works, from what the ranks left."""

from __future__ import annotations

import signal

import pytest

from srlhpc.doctor.mpi_rules import (
    fitting_plugin,
    later_finding,
    library_name,
    mpi_finding,
    sharing_finding,
    sum_finding,
)
from tests.doctor.reported import MPICH, OPEN_MPI, lost, node, report

ALONE = "MPI started 1 rank of 2; this MPI needs something"


def test_ranks_of_one_world_are_ok_with_library_and_plugin() -> None:
    assert mpi_finding([report(0), report(1)], plugin="pmi2").line == (
        "ok       MPI:                2 ranks on 2 nodes in one world (MPICH 5.0.2, srun --mpi=pmi2)"
    )


@pytest.mark.parametrize(("library", "plugin", "right"), [(MPICH, "none", "pmi2"), (OPEN_MPI, "pmi2", "pmix")])
def test_world_of_size_one_names_the_plugin_that_this_mpi_needs(library: str, plugin: str, right: str) -> None:
    ranks = [lost(number, error=ALONE, library=library, exit_code=1) for number in (0, 1)]
    found = mpi_finding(ranks, plugin=plugin)
    assert (found.level, found.remedy) == ("fault", f"set srun_mpi: {right} in the profile")
    assert found.found.startswith("MPI started 1 rank of 2 (")


def test_world_of_size_one_under_mpiexec_points_to_two_mpis() -> None:
    assert "another MPI than mpiexec" in mpi_finding([lost(error=ALONE)], plugin=None).remedy


def test_wrong_plugin_names_the_right_one() -> None:
    found = mpi_finding([lost(0, exit_code=16, last_output="unsupported PMI"), lost(1)], plugin="pmix")
    assert "rank 0 (trainer-default-0) on n1 ended with status 16 in the start of MPI: unsupported PMI" in found.found
    assert found.remedy == "set srun_mpi: pmi2 in the profile"


def test_start_killed_for_want_of_memory_has_signal_and_remedy() -> None:
    small = node(shared_memory={"size": 1 << 20, "free": 1 << 20})
    found = mpi_finding([lost(0, exit_code=128 + signal.SIGBUS, host=small)], plugin="pmi2")
    assert "was ended by SIGBUS in the start of MPI" in found.found
    assert found.remedy == "first put right /dev/shm, see below"


def test_start_that_hangs_points_to_the_network() -> None:
    found = mpi_finding([lost(0), report(1)], plugin="pmi2", timed_out=True)
    assert "hung in the start of MPI" in found.found
    assert "reach each other by host name" in found.remedy


def test_start_without_reports_quotes_srun() -> None:
    silent = [lost(stage="", host={}, library="")]
    found = mpi_finding(silent, plugin="pmi7", launcher_output="Invalid MPI type 'pmi7'")
    assert found.found == "no rank of 1 started: Invalid MPI type 'pmi7'"
    assert "srun --mpi=list" in found.remedy


def test_missing_package_of_the_interpreter_is_to_be_installed() -> None:
    silent = [lost(stage="", host={}, last_output="ModuleNotFoundError: No module named 'mpi4py'")]
    assert "install srlhpc and its packages" in mpi_finding(silent, plugin="pmi2").remedy


def test_broken_exchange_of_addresses_asks_for_shorter_ones() -> None:
    words = "MPIDI_UCX_comm_addr_exchange(159): failed"
    assert "export UCX_TLS=tcp,posix,self" in mpi_finding([lost(exit_code=15, last_output=words)], plugin="pmi2").remedy


def test_start_that_works_at_the_second_try_is_a_warning() -> None:
    found = mpi_finding([report(0), report(1)], plugin="pmi2", first_try="MPIDI_UCX_comm_addr_exchange failed")
    assert found.level == "warning"
    assert "in one world (MPICH 5.0.2, srun --mpi=pmi2), at the second try only: MPIDI_UCX" in found.found


def test_rank_lost_later_is_named_and_not_those_that_wait_for_it() -> None:
    waiting = report(0, stage="waiting for the others", exit_code=None)
    dead = report(1, stage="loading torch", exit_code=128 + signal.SIGKILL)
    found = later_finding([waiting, dead], timed_out=True)
    assert found is not None
    assert found.found == "rank 1 (trainer-default-0) on n2 was ended by SIGKILL in loading torch"
    assert later_finding([report(0), report(1)], timed_out=False) is None


def test_right_sums_are_ok_and_a_wrong_one_is_named() -> None:
    good = sum_finding([report(0), report(1)])
    bad = sum_finding([report(0), report(1, sums={"gloo": "cannot reach n1"})])
    assert good is not None
    assert bad is not None
    assert (good.level, good.found) == ("ok", "gloo over 2 ranks on 2 nodes")
    assert (bad.level, "gloo failed on rank 1" in bad.found, "GLOO_SOCKET_IFNAME" in bad.remedy) == (
        "fault",
        True,
        True,
    )
    assert sum_finding([lost()]) is None


def test_ranks_that_share_no_memory_are_a_warning_unless_that_was_asked_for() -> None:
    warned = sharing_finding([report(shares=False)])
    assert warned is not None
    assert warned.level == "warning"
    assert sharing_finding([report(shares=False, host=node(keeps_to_itself=True))]) is None
    assert sharing_finding([report(shares=True)]) is None


def test_library_has_a_name_and_a_plugin() -> None:
    assert (library_name(MPICH), fitting_plugin(MPICH)) == ("MPICH 5.0.2", "pmi2")
    assert (library_name(OPEN_MPI), fitting_plugin(OPEN_MPI)) == ("Open MPI v5.0.11", "pmix")
    assert fitting_plugin("Something 1.0") is None
