"""`srlhpc.ranks.rank` with a role more: `python -m srlhpc.ranks.mpi_first tests.ranks.toy_rank RUN_DIR ATTEMPT`."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from srlhpc.ranks import rank
from tests.ranks.toy_role import add_watcher


def main(arguments: Sequence[str]) -> int:
    add_watcher(operator.setitem)
    return rank.main(arguments)
