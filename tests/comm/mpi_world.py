"""One rank of three that pose as two nodes: `... mpi_world FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from srlhpc.comm.mpi.world import finalize_or_exit, join_world
from srlhpc.errors import ClusterError


def complaint(error: BaseException | None) -> str:
    return "" if error is None else str(error)


def main(folder: str) -> None:
    wrong_size = difference = None
    try:
        join_world(9)
    except ClusterError as error:
        wrong_size = error
    world = join_world(3, host=f"node{int(os.environ.get('PMI_RANK', '0')) % 2}", timeout_seconds=30)
    world.require_equal({"spec": "same"})
    try:
        world.require_equal({"spec": "same", "layout": str(world.rank == 2)})
    except ClusterError as error:
        difference = error
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "mpich_shm" in line}
    result = {
        "nodes": world.nodes,
        "wrong_size": complaint(wrong_size),
        "difference": complaint(difference),
        "names": [name for name in mapped if Path(name).exists()],
    }
    Path(folder, f"{world.rank}.json").write_text(json.dumps(result))
    finalize_or_exit(world, 20)


if __name__ == "__main__":
    main(sys.argv[1])
