"""/dev/shm on the nodes of a Slurm job: removes what a step has left that was killed while MPI was starting.

Later than that nothing has a name there any more. MPICH names its files `mpich_shm_HASH_NODE` after the hash of
`JOB.STEP`, and steps are counted anew after a requeue: a file that stays would break the start of the next restart.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.processes import is_used
from srlhpc.runs.shared_memory import FOLDER, mpich_names, remove_leftovers
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.srun import over_components

_STEPS = 10_000
"""A job has started fewer steps than that."""
_LONGEST_SECONDS = 30.0


def sweep_nodes(attempt: AttemptPaths, job: str, allocation: Allocation) -> str | None:
    """Runs `sweep_here` on every node; returns why that was not possible, None if it was.

    If it is not, as when a component of the job has been cancelled, on the nodes of each component where it is.

    Args:
        attempt: whose processes are gone.
        job: its job.
        allocation: the components of the job that this process runs in.
    """
    program = [sys.executable, "-m", "srlhpc.launch.node_sweep", str(attempt.folder), job]
    problem = _problem(sweep_command(allocation, program))
    if problem and len(allocation.components) > 1:
        commands = [sweep_command(allocation, program, number) for number in range(len(allocation.components))]
        return "; ".join(filter(None, map(_problem, commands))) or None
    return problem


def _problem(command: Sequence[str]) -> str | None:
    """Runs it; returns why it failed, None if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else None


def sweep_command(allocation: Allocation, program: Sequence[str], only: int | None = None) -> list[str]:
    """One step with one task on every node.

    Args:
        allocation: the components of the job.
        program: of each task.
        only: number of a component; None: all.
    """
    options = ["--mpi=none", "--overlap", "--ntasks-per-node=1", "--cpu-bind=none"]
    counts = [component.nodes for component in allocation.components]
    parts = [[*options, f"--nodes={nodes}", f"--ntasks={nodes}", *program] for nodes in counts]
    return over_components(parts) if only is None else ["srun", f"--het-group={only}", *parts[only]]


def sweep_here(attempt: AttemptPaths, job: str) -> list[Path]:
    """Removes files of an attempt and of its job's steps that nobody uses; returns them."""
    removed = remove_leftovers(attempt)
    for path in _of_steps(job):
        # A rank that comes up at this moment removes its own.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_uid == os.getuid() and not is_used(path):
                path.unlink()
                removed.append(path)
    return removed


def _of_steps(job: str) -> Iterator[Path]:
    known = {name for step in range(_STEPS) for name in mpich_names(f"{job}.{step}".encode(), node="")}
    return (path for path in FOLDER.iterdir() if path.name[: path.name.rfind("_") + 1] in known)


if __name__ == "__main__":
    sweep_here(AttemptPaths(Path(sys.argv[1])), sys.argv[2])
