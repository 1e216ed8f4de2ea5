"""Starting the ranks of one attempt inside a Slurm job: one step over all components."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence

from srlhpc.launch.rank_script import LabelledRank, rank_script
from srlhpc.plan.rank_variables import settings_of_ranks, without_world
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.processes import ATTEMPT_VARIABLE, STEP_VARIABLE
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.srun import srun_command

_OF_THE_BATCH_NODE = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES")
"""srun would hand them to ranks on nodes without GPUs; ranks with GPUs get their own."""
_OF_THE_BATCH_SCRIPT = ("SLURM_CPU_BIND", "SLURM_DISTRIBUTION", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
"""What is set for the first component would hold for all of the step."""
ABORTED = "srun: Job step aborted"
"""What srun says in its log when Slurm has ended a part of the step."""


def start_step(
    attempt: AttemptPaths,
    ranks: Sequence[LabelledRank],
    program: Sequence[str],
    allocation: Allocation,
    plugin: str,
    *,
    stand_by: bool = False,
) -> subprocess.Popen[bytes]:
    """Starts all ranks with one srun, in a session of its own, so that no signal to the foreman reaches it.

    Args:
        attempt: its folders exist; logs and exit statuses go there.
        ranks: all ranks of the plan.
        program: command of a rank.
        allocation: the components of the job.
        plugin: for `--mpi`.
        stand_by: the ranks wait for their attempt, beside a step that has the same CPUs, memory and GPUs.
    """
    script = attempt.folder / "rank.sh"
    # TERM is the only warning of some pre-emptions, and USR1 and USR2 are for the foreman: nobody may die of them.
    rank = "$((SLURM_PROCID + $1))"
    ignored = "USR1 USR2 TERM"
    text = rank_script(
        attempt,
        ranks,
        program,
        rank=rank,
        ignored=ignored,
        noted=attempt.terminated,
        threads=allocation.threads,
        until=attempt.standby if stand_by else None,
    )
    script.write_text(text)
    with open(attempt.logs / "srun.log", "ab") as log:
        return subprocess.Popen(
            srun_command(allocation, plugin, script, overlap=stand_by),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=step_environment(os.environ, attempt, allocation, plugin),
            start_new_session=True,
        )


def end_step(step: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the step: TERM to srun kills every rank at once."""
    if step.poll() is None:
        step.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            step.wait(timeout=60.0)
    if step.poll() is None:
        step.kill()
        step.wait()


def step_environment(
    outer: Mapping[str, str], attempt: AttemptPaths, allocation: Allocation, plugin: str
) -> dict[str, str]:
    """The environment of srun and of the ranks."""
    dropped = (*_OF_THE_BATCH_NODE, *_OF_THE_BATCH_SCRIPT)
    environment = {key: value for key, value in without_world(outer).items() if key not in dropped}
    environment |= {ATTEMPT_VARIABLE: str(attempt.folder), STEP_VARIABLE: "1", **settings_of_ranks(outer)}
    tasks = {count for component in allocation.components for count in component.tasks}
    if plugin == "pmi2" and len(allocation.components) > 1 and len(tasks) > 1:
        # Slurm's PMI2 tells MPICH the nodes in alphabetical order, not in that of the ranks. Where nodes have different
        # numbers of ranks, MPI_Init then hangs; so MPICH takes every rank for alone.
        environment.setdefault("MPIR_CVAR_NOLOCAL", "1")
    return environment


def srun_complaint(attempt: AttemptPaths) -> str:
    """The last error of srun itself, in parentheses; empty if it had none."""
    log = attempt.logs / "srun.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    errors = [line.removeprefix("srun: error: ") for line in lines if line.startswith("srun: error: ")]
    return f" ({errors[-1]})" if errors else ""
