"""Starts one rank of a check as a rank of a run is started, and has another process look around before.

Run as `python -m srlhpc.doctor.node_start WORK` under the launchers of a run.
"""

from __future__ import annotations

import os
import sys

from srlhpc.ranks import mpi_first


def main() -> int:
    """Runs the rank; returns its exit code."""
    work = sys.argv[1]
    # In another process, since MPI is to start in one that has loaded nothing.
    looks = [sys.executable, "-m", "srlhpc.doctor.node_look", work]
    _, status = os.waitpid(os.posix_spawn(sys.executable, looks, os.environ), 0)
    if code := os.waitstatus_to_exitcode(status):
        return code if code > 0 else 128 - code
    sys.argv[1:] = ["srlhpc.doctor.node_check", work]
    return mpi_first.main()


if __name__ == "__main__":
    sys.exit(main())
