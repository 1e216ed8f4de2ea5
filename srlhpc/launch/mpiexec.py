"""Starting the ranks of one attempt on this machine, with mpiexec.

mpiexec gets a session of its own, so that Ctrl-C reaches the foreman only, and dies with the foreman. Each rank runs
under a small shell script that writes down how the rank ended and then succeeds, so that MPI's process manager never
learns of a death and leaves the other ranks alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from srlhpc.comm.mpi.networks import settings_within_a_node
from srlhpc.errors import UserError
from srlhpc.launch.rank_script import LabelledRank, rank_script
from srlhpc.plan.rank_variables import numbers_of_threads, outside_any_world, settings_of_ranks
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.processes import ATTEMPT_VARIABLE, FLAVOUR_VARIABLE
from srlhpc.specs.child_processes import die_with_parent

Flavour = Literal["mpich", "openmpi4", "openmpi5"]


def start_ranks(
    attempt: AttemptPaths,
    ranks: Sequence[LabelledRank],
    program: Sequence[str],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Starts all ranks of an attempt. Call it from the main thread: the ranks die when the calling thread ends.

    Args:
        attempt: its folders exist; logs and exit statuses go there.
        ranks: all ranks of the plan.
        program: command of a rank.
        environment: what the ranks get beside what all have.

    Raises:
        UserError: there is no mpiexec.
    """
    script = attempt.folder / "rank.sh"
    script.write_text(rank_script(attempt, ranks, program))
    return start_mpiexec(attempt, len(ranks), script, attempt.logs / "mpiexec.log", environment)


def start_mpiexec(
    attempt: AttemptPaths,
    ranks: int,
    script: Path,
    output: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Starts a shell script on so many ranks, in a session of its own that ends with this process.

    Args:
        attempt: whose processes they are.
        ranks: size of the world.
        script: what each rank runs.
        output: a file that what mpiexec and the ranks say is added to.
        environment: what they get beside what all have.

    Raises:
        UserError: there is no mpiexec.
    """
    mpiexec = find_mpiexec()
    kind = flavour(mpiexec)
    with open(output, "ab") as said:
        return subprocess.Popen(
            mpiexec_command(mpiexec, kind, ranks, script),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**rank_environment(os.environ, attempt, kind), **environment},
            start_new_session=True,
            preexec_fn=die_with_parent,
        )


def find_mpiexec() -> str:
    """The mpiexec beside this Python, as the mpich wheel installs it, else the one on PATH.

    Raises:
        UserError: there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if found is None:
        raise UserError(f"no mpiexec beside {sys.executable} and none on PATH. Install one: pip install mpich")
    return found


@cache
def flavour(mpiexec: str) -> Flavour:
    """Which MPI an mpiexec belongs to.

    Raises:
        UserError: it does not run, or is of neither MPICH's nor Open MPI's kind.
    """
    try:
        done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{mpiexec} --version failed: {error}. Install an MPI that works: pip install mpich") from None
    text = done.stdout + done.stderr
    if "HYDRA" in text or "MPICH" in text:
        return "mpich"
    if "Open MPI" in text or "OpenRTE" in text:
        return "openmpi4" if any(f" {major}." in text for major in (2, 3, 4)) else "openmpi5"
    raise UserError(
        f"{mpiexec} is neither MPICH's nor Open MPI's; it says: {text.strip()[:200]!r}. Use one: pip install mpich"
    )


def mpiexec_command(mpiexec: str, kind: Flavour, ranks: int, script: Path) -> list[str]:
    """The command that starts all ranks on this machine, more of them than cores if need be."""
    match kind:
        case "mpich":
            # An srlhpc that runs inside a Slurm job must still start its ranks here, and not by srun.
            options = ["-launcher", "fork", "-rmk", "user", "-host", "localhost", "-disable-auto-cleanup"]
        case "openmpi4":
            options = ["--oversubscribe"]
        case "openmpi5":
            # Without fault tolerance its process manager ends all ranks when one dies, whatever the script does.
            options = ["--map-by", ":OVERSUBSCRIBE", "--with-ft", "ulfm"]
    # With setpriv a rank's script also dies when only MPI's local process manager is killed.
    guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [mpiexec, *options, "-n", str(ranks), *guard, "sh", str(script)]


def rank_environment(outer: Mapping[str, str], attempt: AttemptPaths, kind: Flavour) -> dict[str, str]:
    """The environment of the ranks: one thread, quiet waiting, no use of cross-memory attach."""
    environment = outside_any_world(outer)
    environment |= {
        ATTEMPT_VARIABLE: str(attempt.folder),
        FLAVOUR_VARIABLE: kind,
        **settings_of_ranks(outer),
        **numbers_of_threads(outer, 1),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    # As for MPICH in comm/mpi/networks.py.
    environment.setdefault("OMPI_MCA_smsc", "^cma")
    return environment | settings_within_a_node(environment)
