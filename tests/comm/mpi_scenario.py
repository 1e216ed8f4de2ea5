"""One rank of a play over MPI: `python -m tests.comm.mpi_scenario PLAY FOLDER`, under mpiexec -n 3."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from srlhpc.comm.mpi import MpiFabric, finalize_or_exit, start_mpi
from tests.comm.scenarios import PLAYS, RECEIVER, SENDERS


def main(play: str, folder: str) -> None:
    world = start_mpi(3, timeout_seconds=30)
    fabric = MpiFabric(world.comm, {address: address for address in (RECEIVER, *SENDERS)})
    role = PLAYS[play](fabric, world.rank)
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
    main(sys.argv[1], sys.argv[2])
