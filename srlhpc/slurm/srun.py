"""The srun command of a step over all components of a job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from srlhpc.errors import ClusterError
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.specs.cluster import ClusterProfile

_LOAD_SECONDS = 120.0


def srun_command(allocation: Allocation, plugin: str, script: Path, *, overlap: bool = False) -> list[str]:
    """One step: `srun OPTIONS sh rank.sh 0`, or `srun OPTIONS sh rank.sh OFFSET : OPTIONS sh rank.sh OFFSET`.

    The script is given what to add to Slurm's number of a task to get the rank.
    """
    commands, started = [], 0
    for component in allocation.components:
        options = [*_options(component, plugin), *(["--overlap"] if overlap else [])]
        commands.append([*options, "sh", str(script), str(component.first_rank - started)])
        started += component.ranks
    return over_components(commands)


def over_components(commands: Sequence[Sequence[str]]) -> list[str]:
    """The srun command of one step: `srun PART`, or `srun --het-group=0 PART : --het-group=1 PART`.

    Args:
        commands: options and program for each component of the job.
    """
    command = ["srun"]
    for number, own in enumerate(commands):
        command += [":"] if number else []
        command += [f"--het-group={number}"] if len(commands) > 1 else []
        command += own
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
