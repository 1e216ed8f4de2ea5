"""What the ranks of a check write down, and the check that they read: files in one working folder.

WORK/check.json       the ranks, and for a job its profile and allocation
     reports/RANK     what a rank has seen, replaced after every stage, so that a rank that hangs or dies tells where
     batch.json       what the batch script has seen
     attempts/0001/   as in a run: logs, exit statuses; 0002 if the start was tried again
     slurm/           batch script and its output
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json, write_json
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import RANK_VARIABLE


@dataclass(frozen=True)
class CheckedRank:
    """One rank of the check."""

    rank: int
    label: str
    needs_torch: bool
    gpus: float = 0.0
    """What the profile gives a rank of this role."""


@dataclass(frozen=True)
class WorkFolder:
    """The working folder of one check."""

    folder: Path

    @property
    def check(self) -> Path:
        return self.folder / "check.json"

    @property
    def batch(self) -> Path:
        return self.folder / "batch.json"

    @property
    def locked(self) -> Path:
        """The HDF5 file that one rank keeps locked while the others try to open it."""
        return self.folder / "locked.h5"

    @property
    def slurm(self) -> Path:
        return self.folder / "slurm"

    @property
    def attempt(self) -> AttemptPaths:
        """The last try."""
        runs = RunPaths(self.folder)
        return runs.last_attempt() or runs.attempt(1)

    def try_again(self) -> None:
        """Forgets what the ranks have reported, for a second try."""
        for path in (self.folder / "reports").iterdir():
            path.unlink()
        RunPaths(self.folder).new_attempt()

    def report(self, rank: int) -> Path:
        return self.folder / "reports" / str(rank)

    def make(self, ranks: Sequence[CheckedRank], more: Mapping[str, Any] | None = None) -> None:
        """Makes the folders and `check.json`."""
        self.attempt.make()
        self.slurm.mkdir()
        (self.folder / "reports").mkdir()
        write_json(self.check, {"ranks": [asdict(rank) for rank in ranks], **(more or {})})

    def read_ranks(self) -> list[CheckedRank]:
        return [CheckedRank(**entry) for entry in (read_json(self.check) or {})["ranks"]]

    def this_rank(self) -> CheckedRank:
        """The rank that this process is."""
        return self.read_ranks()[int(os.environ[RANK_VARIABLE])]


class Stages:
    """The report of this rank, replaced on disk at every stage; it goes on from what is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: dict[str, Any] = read_json(path) or {}

    def enter(self, stage: str, **facts: Any) -> None:
        """Says what comes next, and what was seen before."""
        self.add(stage=stage, **facts)

    def add(self, **facts: Any) -> None:
        self._content |= facts
        write_json(self._path, self._content)


@dataclass(frozen=True)
class RankReport:
    """What is known of a rank afterwards; empty where it did not get so far."""

    rank: CheckedRank
    stage: str = ""
    """What it did when it was last heard of; `done` at the end."""
    error: str = ""
    exit_code: int | None = None
    """None: it was not seen to end. 128 + N for signal N."""
    last_output: str = ""
    """The last line of its log."""
    host: Mapping[str, Any] = field(default_factory=dict)
    """`machine.machine_facts` of its node."""
    library: str = ""
    """Name and version of the MPI library."""
    mpi: Mapping[str, Any] = field(default_factory=dict)
    """size, nodes, threads."""
    clock: Sequence[float] = ()
    """Seconds since 1970 just after each of some barriers."""
    lock: str = ""
    """What opening the file that another rank has locked gave: `kept out`, `opened`, or the error."""
    shares: bool | None = None
    """Whether it shares memory with the other ranks of its node; None: it is alone there."""
    gpu: Mapping[str, Any] = field(default_factory=dict)
    """torch, built, seen, name, device, identity, error."""
    sums: Mapping[str, str] = field(default_factory=dict)
    """Result of an all-reduce by backend: `ok` or the error."""

    @property
    def has_failed(self) -> bool:
        return bool(self.error or self.exit_code)

    @property
    def name(self) -> str:
        where = f" on {self.host['host']}" if self.host else ""
        return f"rank {self.rank.rank} ({self.rank.label}){where}"


def read_reports(work: WorkFolder) -> list[RankReport]:
    """What every rank of a check has left."""
    found = []
    for rank in work.read_ranks():
        content = read_json(work.report(rank.rank)) or {}
        found.append(
            RankReport(
                rank,
                exit_code=_exit_code(work.attempt, rank.rank),
                last_output=last_line(work.attempt.log(rank.rank, rank.label)),
                **content,
            )
        )
    return found


def last_line(path: Path) -> str:
    """The last line of a text that is not empty; empty if there is none."""
    try:
        lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line), "")


def _exit_code(attempt: AttemptPaths, rank: int) -> int | None:
    try:
        return int(attempt.exit(rank).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
