"""Runs a foreman over fake ranks: `fake_run.py ROOT WAY RANK_LABELS...`.

A process of its own, so that it can be killed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from srlhpc.launch.foreman import Foreman
from srlhpc.launch.monitor import Limits
from srlhpc.plan.roles import ROLES, role_of
from srlhpc.runs.creation import create_run
from srlhpc.runs.lease import Lease


@dataclass(frozen=True)
class Rank:
    rank: int
    label: str

    @property
    def is_essential(self) -> bool:
        return ROLES[role_of(self.label)].is_essential


def main() -> None:
    root, way, labels = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    paths = create_run(root, "fake", "fake", "seed: 1\n", 1, sys.argv)
    lease = Lease(paths.lease)
    lease.take(1)
    attempt = paths.new_attempt()
    rank = str(Path(__file__).with_name("fake_rank.py"))
    program = [sys.executable, rank, str(paths.folder), str(attempt.number), way]
    limits = Limits(start=2.0 if way == "silent" else 60.0, lost=0.3, leave=5.0, poll=0.02)
    ranks = [Rank(number, label) for number, label in enumerate(labels)]
    outcome = Foreman(paths, attempt, lease, ranks, program=program, limits=limits).run()
    lease.release()
    sys.exit(outcome.exit_code)


main()
