"""Starting a small MPI world from inside a test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LAUNCHER_VARIABLES = ("PMI", "MPI", "HYDRA", "HYDI", "OMPI", "PRTE", "SLURM")
WRAPPER = "trap '' USR1; \"$@\"; exit 0"
"""A rank that dies under this is not noticed by Hydra, which would end the others."""


def mpiexec() -> str:
    """The launcher beside this interpreter, or the one on the path; skips where there is none.

    Under mpiexec, where every rank runs the same tests, only rank 0 starts worlds.
    """
    if os.environ.get("PMI_RANK", "0") != "0":
        pytest.skip("rank 0 starts the worlds of these tests")
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("no mpiexec")
    return found


def run_ranks(
    ranks: int,
    module: str,
    *arguments: str,
    survive: bool = False,
    nodes: int = 1,
    timeout_seconds: float = 60,
) -> str:
    """Runs `python -m module` on that many ranks; its output. The whole world is killed when it takes too long.

    Args:
        ranks: size of the world.
        module: what every rank runs.
        arguments: of the module.
        survive: the death of one rank does not end the others.
        nodes: MPICH treats the ranks as if they were on so many nodes: the network's code moves the messages.
        timeout_seconds: limit of the whole.
    """
    wrapper: Sequence[str] = ("sh", "-c", WRAPPER, "rank") if survive else ()
    flags = ["-disable-auto-cleanup"] if survive else []
    command = [mpiexec(), *flags, "-n", str(ranks), *wrapper, sys.executable, "-m", module, *arguments]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHER_VARIABLES)}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "UCX_TLS": "^cma"}
    environment |= {"MPIR_CVAR_NUM_CLIQUES": str(nodes)} if nodes > 1 else {}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        pytest.fail(f"{' '.join(command)} did not end within {timeout_seconds} s; it said:\n{output}")
    assert process.returncode == 0, output
    return output
