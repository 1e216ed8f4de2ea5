"""What ranks and nodes report, for tests of the rules."""

from __future__ import annotations

from typing import Any

from srlhpc.doctor.reports import CheckedRank, RankReport

GIB = 1 << 30
VERSIONS = {"srlhpc": "1.0", "numpy": "2.0", "torch": "2.9"}
MPICH = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx"
OPEN_MPI = "Open MPI v5.0.11, package: Open MPI"


def node(host: str = "n1", **changes: Any) -> dict[str, Any]:
    """A healthy node's facts."""
    facts = {
        "host": host,
        "cpus": 8,
        "interpreter": "/env/python",
        "python": "3.11.7",
        "versions": VERSIONS,
        "code": "abc",
        "open_files": 4096,
        "open_files_most": 4096,
        "shared_memory": {"size": 8 * GIB, "free": 8 * GIB},
        "against_folder_seconds": 0.0,
        "granted": 0,
        "needed": 0,
        "bound": 0,
        "keeps_to_itself": False,
    }
    return facts | changes


def report(number: int = 0, *, gpus: float = 0.0, label: str = "trainer-default-0", **changes: Any) -> RankReport:
    """A rank that went through the whole check; `changes` replace fields of its report."""
    fields: dict[str, Any] = {
        "stage": "done",
        "exit_code": 0,
        "host": node(f"n{number + 1}"),
        "library": MPICH,
        "mpi": {"size": 2, "nodes": 2, "threads": 1},
        "clock": [10.0, 20.0, 30.0],
        "gpu": {"torch": "2.9", "built": None, "seen": 0},
        "sums": {"gloo": "ok"},
    }
    return RankReport(CheckedRank(number, label, needs_torch=True, gpus=gpus), **(fields | changes))


def lost(number: int = 0, **changes: Any) -> RankReport:
    """A rank that did not get through the start of MPI."""
    empty: dict[str, Any] = {"stage": "the start of MPI", "exit_code": None, "mpi": {}, "clock": [], "gpu": {}}
    return report(number, **(empty | {"sums": {}} | changes))
