"""One rank of a play over MPI: `python -m tests.comm.mpi_scenario PLAY FOLDER [MEMORY]`, under mpiexec -n 3.

MEMORY `shared`: rows lie in memory that the ranks share. `refused`: the last rank cannot open it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.mpi.world import MpiTransport, finalize_or_exit, join_world
from srlhpc.comm.node import links as node_links
from srlhpc.comm.transport import RankTransport
from tests.comm.scenarios import PLAYS, RECEIVER, SENDERS
from tests.comm.shared_transport import rows_of


def main(play: str, folder: str, memory: str) -> None:
    world = join_world(3, timeout_seconds=30)
    rank_of = {address: address for address in (RECEIVER, *SENDERS)}
    if memory == "refused" and world.rank == SENDERS[-1]:
        node_links._opened = lambda *_: None
    node = node_links.share_links(world, rank_of, rows_of(PLAYS[play])) if memory else None
    assert (node is not None) == (memory == "shared")
    transport = RankTransport(world.rank, rank_of, InProcessTransport(), MpiTransport(world.comm, rank_of), node)
    role = PLAYS[play](transport, world.rank)
    while True:
        try:
            next(role)
        except StopIteration as end:
            result = end.value
            break
        time.sleep(20e-6)
    Path(folder, f"{world.rank}.json").write_text(json.dumps(result))
    finalize_or_exit(world, 20)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "".join(sys.argv[3:]))
