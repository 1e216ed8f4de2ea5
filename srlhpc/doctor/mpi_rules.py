"""Tells from the reports of a check's ranks whether MPI works, and what to do if it does not. Pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from srlhpc.doctor import machine_rules
from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.reports import RankReport
from srlhpc.errors import counted

MPI = "MPI"
SUMS = "all-reduce"


_SHORT_ADDRESSES = (
    "MPICH's exchange of addresses breaks when they are long: write `export UCX_TLS=tcp,posix,self` (or rc,posix,self "
    "on InfiniBand) into the profile's setup"
)
ADDRESSES = "MPIDI_UCX_comm_addr_exchange"
"""Where MPICH fails now and then under Slurm's PMI2, over several nodes of a busy cluster."""


def library_name(text: str) -> str:
    """`MPICH 5.0.2` or `Open MPI v5.0.11` from what the library says of itself."""
    first = text.split("\n")[0]
    if match := re.match(r"MPICH Version:\s*(\S+)", first):
        return f"MPICH {match[1]}"
    return first.partition(",")[0].strip()


def fitting_plugin(library: str) -> str | None:
    """What `srun --mpi=` an MPI library needs; None if it is not known."""
    if "Open MPI" in library:
        return "pmix"
    return "pmi2" if any(word in library for word in ("MPICH", "CRAY", "Intel")) else None


def mpi_finding(
    ranks: Sequence[RankReport],
    *,
    plugin: str | None,
    timed_out: bool = False,
    launcher_output: str = "",
    first_try: str = "",
) -> Finding:
    """Whether all ranks became one world.

    Args:
        ranks: all of the check.
        plugin: of srun; None: mpiexec started them.
        timed_out: whether they were ended because they took too long.
        launcher_output: the last that srun or mpiexec printed.
        first_try: how an earlier start of the same ranks ended; empty if there was none.
    """
    heard = [rank for rank in ranks if rank.stage]
    if not heard:
        return _silent(ranks, plugin, timed_out, launcher_output)
    library = next((rank.library for rank in heard if rank.library), "")
    how = f"srun --mpi={plugin}" if plugin else "mpiexec"
    if wrong := next((rank for rank in heard if rank.error.startswith("MPI started")), None):
        found = wrong.error.partition(";")[0]
        return fault(MPI, f"{found} ({library_name(library)}, {how})", _start_remedy(library, plugin))
    late = [rank for rank in ranks if not rank.mpi]
    if not late:
        mpi = ranks[0].mpi
        nodes = counted(mpi["nodes"], "node")
        world = f"{counted(mpi['size'], 'rank')} on {nodes} in one world ({library_name(library)}, {how})"
        if first_try:
            return warning(MPI, f"{world}, at the second try only: {first_try}", _SHORT_ADDRESSES)
        return ok(MPI, world)
    first = next((rank for rank in late if rank.has_failed), late[0])
    what = f"{first.name} {_end(first, timed_out)}"
    remedy = _remedy(first, library, plugin, timed_out)
    if (lacks := machine_rules.shortage(machine_rules.machines(ranks))) is not None:
        remedy = f"first put right {lacks}, see below"
    return fault(MPI, f"{what} ({library_name(library)}, {how})", remedy)


def later_finding(ranks: Sequence[RankReport], *, timed_out: bool) -> Finding | None:
    """A rank that was lost after MPI had started; None if there is none."""
    late = [rank for rank in ranks if rank.mpi and rank.stage != "done"]
    # One that only waits for others is not the cause.
    causes = [rank for rank in late if rank.has_failed] or [
        rank for rank in late if not rank.stage.startswith("waiting")
    ]
    if not causes:
        return None
    first = causes[0]
    return fault("ranks", f"{first.name} {_end(first, timed_out)}", _later_remedy(first))


def sum_finding(ranks: Sequence[RankReport]) -> Finding | None:
    """Whether ranks can sum over the network; None if none got so far."""
    tried = [(rank, backend, result) for rank in ranks for backend, result in rank.sums.items()]
    for rank, backend, result in tried:
        if result != "ok":
            remedy = (
                "do the nodes reach each other by host name? set GLOO_SOCKET_IFNAME in the profile's setup to the "
                "network between them (`ip -br address` lists them)"
                if backend == "gloo"
                else "set NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME in the profile's setup, and look at the ranks' logs"
            )
            return fault(SUMS, f"{backend} failed on {rank.name}: {result}", remedy)
    if not tried:
        return None
    counts = {
        name: sum(backend == name for _, backend, _ in tried) for name in dict.fromkeys(entry[1] for entry in tried)
    }
    hosts = {rank.host["host"] for rank, _, _ in tried}
    where = ", ".join(f"{name} over {counted(count, 'rank')}" for name, count in counts.items())
    return ok(SUMS, f"{where} on {counted(len(hosts), 'node')}")


def sharing_finding(ranks: Sequence[RankReport]) -> Finding | None:
    """Whether the ranks of a node share memory; None where there is nothing to report."""
    alone = [rank for rank in ranks if rank.shares is False and not rank.host.get("keeps_to_itself")]
    if not alone:
        return None
    return warning(
        "node memory",
        f"ranks on {alone[0].host['host']} share no memory, so each pulls its own parameters",
        "in a container, start all ranks of a node in one (a shared IPC namespace); else nothing needs doing",
    )


def _silent(ranks: Sequence[RankReport], plugin: str | None, timed_out: bool, words: str) -> Finding:
    """No rank has written a line."""
    said = words or next((rank.last_output for rank in ranks if rank.last_output), "")
    found = f"no rank of {len(ranks)} started" + (" in time" if timed_out else "") + (f": {said}" if said else "")
    if "No module named" in said or "ImportError" in said:
        return fault(MPI, found, "install srlhpc and its packages in the Python environment of the nodes")
    if plugin is None:
        return fault(MPI, found, "does `mpiexec -n 2 hostname` work? if not: pip install --force-reinstall mpich")
    return fault(MPI, found, f"is {plugin} one of `srun --mpi=list`? set srun_mpi in the profile to one of those")


def _end(rank: RankReport, timed_out: bool) -> str:
    """How a rank was lost."""
    where = f"in {rank.stage}" if rank.stage else "before its first line"
    if rank.error:
        return f"failed {where}: {rank.error.splitlines()[0]}"
    if rank.exit_code is not None and rank.exit_code > 128:
        return f"was ended by {_signal(rank.exit_code - 128)} {where}"
    if rank.exit_code:
        return f"ended with status {rank.exit_code} {where}" + (f": {rank.last_output}" if rank.last_output else "")
    return (
        f"hung {where}" if timed_out else f"was ended {where}" + (f": {rank.last_output}" if rank.last_output else "")
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _remedy(rank: RankReport, library: str, plugin: str | None, timed_out: bool) -> str:
    if ADDRESSES in rank.last_output:
        return _SHORT_ADDRESSES
    needed = fitting_plugin(library)
    if plugin and needed and not plugin.startswith(needed):
        return _start_remedy(library, plugin)
    if timed_out:
        return (
            "do the nodes reach each other by host name, and does no firewall stand between? for MPICH, "
            "UCX_NET_DEVICES in the profile's setup chooses the network"
        )
    if plugin is None:
        return "does `mpiexec -n 2 hostname` work? if not: pip install --force-reinstall mpich"
    return "the last line of the log above says what MPI missed"


def _start_remedy(library: str, plugin: str | None) -> str:
    needed = fitting_plugin(library)
    if plugin is None:
        return "mpi4py uses another MPI than mpiexec belongs to: pip install --force-reinstall mpich mpi4py"
    if needed and not plugin.startswith(needed):
        return f"set srun_mpi: {needed} in the profile"
    return "set srun_mpi in the profile to one of `srun --mpi=list`"


def _later_remedy(rank: RankReport) -> str:
    if "shared" in rank.stage or rank.exit_code == 128 + signal.SIGBUS:
        return "make /dev/shm larger on that node"
    if "torch" in rank.stage:
        return "does `python -c 'import torch'` work on that node?"
    return "its last line above says more; a rank that only waits is not the cause"
