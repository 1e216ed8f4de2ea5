"""The batch script of a job. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from srlhpc.slurm.allocation import Allocation, Option
from srlhpc.slurm.batch_mark import FOREMAN
from srlhpc.specs.cluster import ClusterProfile


def sbatch_text(
    allocation: Allocation,
    cluster: ClusterProfile,
    *,
    name: str,
    folder: Path,
    command: str,
    dependency: str | None = None,
) -> str:
    """The script that sbatch gets: options of every component, set-up lines, the foreman.

    Args:
        allocation: what to ask for.
        cluster: signal, requeue policy, modules and set-up lines.
        name: of the job.
        folder: where the batch script's output goes.
        command: the foreman, a shell command. It replaces the shell, which would neither pass on signals nor survive
            them.
        dependency: as `--dependency` takes it.
    """
    log = f"{str(folder).replace('%', '%%')}/%j_0_log"
    job: dict[str, Option | None] = {
        "job-name": name,
        "output": f"{log}.out",
        "error": f"{log}.err",
        "open-mode": "append",
        "requeue" if cluster.requeue else "no-requeue": True,
        # B: to the batch script alone. Otherwise Slurm sends it to the ranks, and kills those that do not expect it.
        "signal": f"B:{cluster.signal}@{cluster.signal_lead_seconds}",
        "dependency": dependency,
    }
    lines = ["#!/bin/bash"]
    for number, component in enumerate(allocation.components):
        if number:
            lines.append("#SBATCH hetjob")
        lines += _options({**({} if number else job), "time": allocation.minutes, **component.options})
    # A warning during the set-up is noted; then signals are ignored until the foreman holds them.
    lines.append("trap 'export SRLHPC_WARNED=1' USR1 USR2")
    # Without the submitting shell's environment bash has a PATH, but keeps it to itself.
    lines += ["export PATH"] if "export" in cluster.sbatch else []
    lines += [*_modules(cluster), *_setup(cluster), "export SUBMITIT_EXECUTOR=slurm"]
    # submitit asks for USR2 unless told otherwise.
    lines += [f"export SUBMITIT_PREEMPT_SIGNAL={cluster.signal}"] if cluster.signal != "USR2" else []
    return "\n".join([*lines, "trap '' USR1 USR2 TERM", f"exec {command}", ""])


def _modules(cluster: ClusterProfile) -> Iterator[str]:
    """A module that cannot be loaded ends the job at once, rather than Python or MPI in some other way later."""
    if cluster.modules:
        # A shell that has nothing of a login shell's environment does not know the command yet.
        yield "type module >/dev/null 2>&1 || . /etc/profile"
    for module in cluster.modules:
        load = f"module load {shlex.quote(module)}"
        yield load
        yield f"[ $? = 0 ] || {{ echo {shlex.quote(f'{FOREMAN}{load} failed')} >&2; exit 1; }}"


def _setup(cluster: ClusterProfile) -> Iterator[str]:
    """Lines that fail are named, and the next ones run, as in any batch script."""
    if cluster.setup:
        yield f"trap 'echo \"{FOREMAN}set-up line failed with exit code $?: $BASH_COMMAND\" >&2' ERR"
        yield from cluster.setup
        yield "trap - ERR"


def _options(options: Mapping[str, Option | None]) -> Iterator[str]:
    for name, value in options.items():
        if value is True:
            yield f"#SBATCH --{name}"
        elif value is not None:
            yield f"#SBATCH --{name}={_quoted(str(value))}"


def _quoted(text: str) -> str:
    """A value as sbatch reads it, which, other than a shell, takes a backslash within quotes for itself."""
    if "\\" in text or "'" in text:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return shlex.quote(text)
