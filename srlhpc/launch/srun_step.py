"""Starting the ranks of one attempt inside a Slurm job: one step over all components."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from srlhpc.launch.allocation import Allocation, Component
from srlhpc.launch.local import STEP_VARIABLE, LabelledRank, rank_script
from srlhpc.launch.processes import ATTEMPT_VARIABLE
from srlhpc.launch.rank_variables import settings_of_ranks, without_world
from srlhpc.launch.rundir import AttemptPaths
from srlhpc.objects import ClusterError
from srlhpc.specs.cluster import ClusterProfile

_OF_THE_BATCH_NODE = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES")
"""srun would hand them to ranks on nodes without GPUs; ranks with GPUs get their own."""
_OF_THE_BATCH_SCRIPT = ("SLURM_CPU_BIND", "SLURM_DISTRIBUTION", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
"""What was said of the first component would hold for all of the step."""
ABORTED = "srun: Job step aborted"
"""What srun says in its log when Slurm has ended a part of the step."""
_LOAD_SECONDS = 120.0


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


def srun_command(allocation: Allocation, plugin: str, script: Path, *, overlap: bool = False) -> list[str]:
    """One step: `srun OPTIONS sh rank.sh 0`, or `srun OPTIONS sh rank.sh OFFSET : OPTIONS sh rank.sh OFFSET`.

    The script is given what to add to Slurm's number of a task to get the rank.
    """
    parts, started = [], 0
    for component in allocation.components:
        options = [*_options(component, plugin), *(["--overlap"] if overlap else [])]
        parts.append([*options, "sh", str(script), str(component.first_rank - started)])
        started += component.ranks
    return over_components(parts)


def over_components(parts: Sequence[Sequence[str]]) -> list[str]:
    """The srun command of one step: `srun PART`, or `srun --het-group=0 PART : --het-group=1 PART`.

    Args:
        parts: options and program for each component of the job.
    """
    command = ["srun"]
    for number, part in enumerate(parts):
        command += [":"] if number else []
        command += [f"--het-group={number}"] if len(parts) > 1 else []
        command += part
    return command


def _options(component: Component, plugin: str) -> list[str]:
    options = [
        f"--mpi={plugin}",
        # A dead rank must not take the others with it: the coordinator decides.
        "--kill-on-bad-exit=0",
        # Nor must WaitTime in slurm.conf end the step some time after the first rank has left.
        "--wait=0",
        # `export` of the batch script is not the step's: ranks get what the script has set up.
        "--export=ALL",
        "--unbuffered",
        "--label",
        f"--nodes={component.nodes}",
        f"--ntasks={component.ranks}",
        f"--ntasks-per-node={max(component.tasks)}",
        "--distribution=block",
        "--cpu-bind=none",
    ]
    cpus = component.options.get("cpus-per-task")
    # Since 22.05 srun no longer takes it from the job.
    return [*options, f"--cpus-per-task={cpus}"] if cpus else options


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


def srun_plugin(cluster: ClusterProfile) -> str:
    """The `--mpi` plugin: the profile's, else the one that the MPI of mpi4py needs.

    Raises:
        ClusterError: mpi4py cannot be loaded, or not in time, or its MPI is of an unknown kind.
    """
    if cluster.srun_mpi:
        return cluster.srun_mpi
    known = {"mpich": "pmi2", "openmpi": "pmix"}
    if cluster.mpi != "auto":
        return known[cluster.mpi]
    # In a process of its own: the foreman stays outside MPI.
    code = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=_LOAD_SECONDS)
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"mpi4py was not loaded within {_LOAD_SECONDS:.0f} s on the batch node; is its file system slow? "
            "With srun_mpi in the cluster profile it need not be loaded for this"
        ) from None
    if done.returncode:
        raise ClusterError(f"mpi4py cannot be loaded on the batch node: {done.stderr.strip()[-300:]}")
    if "Open MPI" in done.stdout:
        return known["openmpi"]
    if "MPICH" in done.stdout or "CRAY" in done.stdout.upper() or "Intel" in done.stdout:
        return known["mpich"]
    raise ClusterError(
        f"no srun plugin is known for this MPI ({done.stdout.strip()[:80]}); set srun_mpi in the cluster profile "
        "to one of `srun --mpi=list`"
    )
