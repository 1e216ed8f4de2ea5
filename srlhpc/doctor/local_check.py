"""Two ranks on this machine, started as `srlhpc run` starts its ranks."""

from __future__ import annotations

import subprocess
import sys
import time

from srlhpc.data.atomic import write_json
from srlhpc.doctor.folder_probe import LOCKING
from srlhpc.doctor.reports import CheckedRank, RankReport, WorkFolder, last_line, read_reports
from srlhpc.launch.mpiexec import start_ranks
from srlhpc.runs.processes import kill_processes_of
from srlhpc.runs.shared_memory import remove_leftovers

RANKS = (CheckedRank(0, "first", needs_torch=True), CheckedRank(1, "second", needs_torch=True))
STEP_SECONDS = 120.0
"""Time for the whole check; most of it is loading torch from a slow file system."""
_AFTER_FAILURE_SECONDS = 5.0
"""Time for the other ranks to fail too, with messages that say more."""


def check_program(work: WorkFolder, interpreter: str = sys.executable) -> list[str]:
    """The command of a rank."""
    locking = [f"{name}={value}" for name, value in LOCKING.items()]
    return ["env", *locking, interpreter, "-m", "srlhpc.doctor.node_start", str(work.folder)]


def run_here(work: WorkFolder, limit_seconds: float = STEP_SECONDS) -> tuple[list[RankReport], str]:
    """Runs both ranks to their end or to the limit, and leaves nothing behind.

    Returns:
        Their reports, and the last words of mpiexec.

    Raises:
        UserError: there is no mpiexec.
    """
    work.make(RANKS)
    attempt = work.attempt
    # What a killed start leaves in /dev/shm is known by this time.
    write_json(attempt.attempt, {"time": time.time()})
    mpiexec = start_ranks(attempt, RANKS, check_program(work))
    try:
        wait_for_ranks(mpiexec, work, limit_seconds)
    finally:
        mpiexec.kill()
        mpiexec.wait()
        kill_processes_of(attempt.folder)
        remove_leftovers(attempt)
    return read_reports(work), last_line(attempt.logs / "mpiexec.log")


def wait_for_ranks(launcher: subprocess.Popen[bytes], work: WorkFolder, limit_seconds: float) -> bool:
    """Waits until all ranks have ended, or one has failed, since the others would wait for it for ever.

    Returns:
        Whether they took too long.
    """
    deadline, failed = time.monotonic() + limit_seconds, False
    while launcher.poll() is None:
        if time.monotonic() > deadline:
            return not failed
        if not failed and any(rank.has_failed for rank in read_reports(work)):
            failed, deadline = True, time.monotonic() + _AFTER_FAILURE_SECONDS
        time.sleep(0.1)
    return False
