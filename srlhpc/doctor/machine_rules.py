"""Turns facts about the nodes into findings: shared memory, open files, clocks, Python environment. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.reports import RankReport

Machine = Mapping[str, Any]

MIB = 1 << 20
RANK_BYTES = 6 * MIB
"""What MPICH with UCX takes of /dev/shm for a rank at its start: 5 MiB for each of 2 to 8 ranks."""
PARAMETER_BYTES = 64 * MIB
"""Room for the two copies of the parameters that the ranks of a node share: networks of 8 million numbers."""
FEW_FILES, VERY_FEW_FILES = 1024, 256
SKEW_SECONDS, LARGE_SKEW_SECONDS = 1.0, 30.0
"""Differences of clocks that are a warning and a fault: `status` takes a rank that was silent for a minute for lost."""


def machines(ranks: Sequence[RankReport]) -> list[Machine]:
    """The facts of every node, once."""
    found: dict[str, Machine] = {}
    for rank in ranks:
        if rank.host:
            found.setdefault(str(rank.host["host"]), rank.host)
    return list(found.values())


def shared_memory(nodes: Sequence[Machine]) -> Finding:
    """Whether /dev/shm has room for as many ranks as a node has CPUs."""
    what = "/dev/shm"
    for node in nodes:
        if node["shared_memory"] is None:
            return fault(what, f"there is none on {node['host']}", "mount a tmpfs there; MPI and torch need it")
    node = min(nodes, key=lambda each: int(each["shared_memory"]["free"]))
    free, size = node["shared_memory"]["free"], node["shared_memory"]["size"]
    need = RANK_BYTES * node["cpus"] + PARAMETER_BYTES
    found = f"{_amount(free)} of {_amount(size)} free on {node['host']}"
    remedy = (
        f"a run there may take {_amount(need)}: mount -o remount,size=50% /dev/shm, or for a container --shm-size=2g; "
        "if it is full, remove what dead jobs have left there"
    )
    if free < 4 * RANK_BYTES:
        return fault(what, f"{found}, too little for MPI to start", remedy)
    return warning(what, found, remedy) if free < need else ok(what, found)


def shortage(nodes: Sequence[Machine]) -> str | None:
    """What MPI cannot start without, if a node lacks it."""
    for finding in (shared_memory(nodes), open_files(nodes)) if nodes else ():
        if finding.level == "fault":
            return finding.what
    return None


def open_files(nodes: Sequence[Machine]) -> Finding:
    """The limit on open files."""
    what = "open files"
    node = min(nodes, key=lambda each: _files(each["open_files"]))
    limit = _files(node["open_files"])
    found = f"at most {'any number' if limit == float('inf') else node['open_files']} on {node['host']}"
    line = f"ulimit -n {min(4096, _files(node['open_files_most'])):.0f}"
    remedy = f"a large run needs more: write `{line}` into the profile's setup, or into the shell that starts srlhpc"
    if limit < VERY_FEW_FILES:
        return fault(what, found, remedy)
    return warning(what, found, remedy) if limit < FEW_FILES else ok(what, found)


def clocks(ranks: Sequence[RankReport]) -> Finding | None:
    """How far the nodes' clocks are apart; None if they were not read."""
    what = "clocks"
    timed = [rank for rank in ranks if rank.clock]
    servers = [node["against_folder_seconds"] for node in machines(ranks)]
    against = max((abs(seconds) for seconds in servers if seconds is not None), default=0.0)
    if not timed:
        return None
    first = timed[0]
    skews = {
        rank.host["host"]: statistics.median(a - b for a, b in zip(rank.clock, first.clock, strict=True))
        for rank in timed
    }
    host, skew = max(skews.items(), key=lambda entry: abs(entry[1]))
    found = (
        f"{host} is {abs(skew):.1f} s {'before' if skew > 0 else 'behind'} {first.host['host']}"
        if abs(skew) >= SKEW_SECONDS
        else f"{'nodes' if len(skews) > 1 else 'processes'} agree within {_upwards(abs(skew)):.1f} s"
    )
    if against >= SKEW_SECONDS:
        found += f", and nodes and the run folder's server differ by {against:.1f} s"
    remedy = "start a time service on the nodes (chronyd); with wrong clocks the age of a run's files misleads status"
    largest = max(abs(skew), against)
    if largest >= LARGE_SKEW_SECONDS:
        return fault(what, found, remedy)
    return warning(what, found, remedy) if largest >= SKEW_SECONDS else ok(what, found)


def environment(nodes: Sequence[Machine], here: Machine, *, job: bool) -> Finding:
    """Whether the nodes have the same srlhpc and libraries, and the same as here.

    Args:
        nodes: facts of every node.
        here: facts of this process.
        job: whether the nodes are a cluster's.
    """
    what = "Python"
    first = nodes[0]
    where = ", ".join(dict.fromkeys(str(node["host"]) for node in nodes))
    remedy = "install the same versions everywhere, or let `python` of the profile name one environment for all nodes"
    for node in nodes[1:]:
        if differs := _differences(node, first):
            return fault(what, f"{node['host']} has {differs} ({first['host']})", remedy)
    if first["code"] != here["code"] or first["versions"]["srlhpc"] != here["versions"]["srlhpc"]:
        return fault(
            what,
            f"{first['interpreter']} on {where} has another srlhpc ({first['versions']['srlhpc']}, code "
            f"{first['code']}) than this one ({here['versions']['srlhpc']}, code {here['code']})",
            "install the same srlhpc there, or let `python` of the profile name the interpreter that has it",
        )
    if differs := _differences(first, here):
        return warning(
            what,
            f"{first['interpreter']} on {where} has {differs} (here)",
            "runs train there, but a run that is resumed here may not repeat the same numbers; install equal versions",
        )
    versions = first["versions"]
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "srlhpc")
    same = "the same as here, " if job else ""
    return ok(what, f"{first['python']} with srlhpc {versions['srlhpc']}, {same}{libraries}")


def _differences(node: Machine, other: Machine) -> str:
    """`torch 2.6, not 2.13` for all that differs; empty if nothing does."""
    found = [
        f"{name} {version}, not {other['versions'].get(name)}"
        for name, version in node["versions"].items()
        if version != other["versions"].get(name)
    ]
    if not found and node["code"] != other["code"]:
        found = ["other code of srlhpc"]
    if node["python"] != other["python"]:
        found.append(f"Python {node['python']}, not {other['python']}")
    return "; ".join(found)


def _files(limit: int) -> float:
    """The limit as a number that compares; RLIM_INFINITY is -1."""
    return float("inf") if limit < 0 else float(limit)


def _amount(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / MIB:.0f} MiB"


def _upwards(seconds: float) -> float:
    """Seconds rounded up to the next tenth."""
    return max(0.1, -(-seconds * 10 // 1) / 10)
