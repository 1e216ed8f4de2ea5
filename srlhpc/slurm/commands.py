"""Running Slurm's commands: one function, and what their complaints mean."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from srlhpc.errors import ClusterError
from srlhpc.plan.rank_variables import outside_any_world, without_threads

_SILENCE = (
    "Unable to contact slurm",
    "Connection refused",
    "Socket timed out",
    "Connection timed out",
    "Zero Bytes",
    "configuration source",
)

_REMEDIES = {
    "Invalid account": "set account in the cluster profile to one of `sacctmgr show associations user=$USER`",
    "invalid partition": "set partition in the cluster profile to one that `sinfo -s` lists",
    "Invalid qos": "set qos in the cluster profile to one of `sacctmgr show qos`",
    "time limit is invalid": "ask for less by --time; `sinfo -o '%P %l'` lists the limits of the partitions",
    "time limit exceeds": "ask for less by --time; `sinfo -o '%P %l'` lists the limits of the partitions",
    "Requested time": "ask for less by --time; `sinfo -o '%P %l'` lists the limits of the partitions",
    "node configuration is not available": "no node has the CPUs, GPUs, GPU type or memory that one node is to give; "
    "lower ranks_per_node or what a rank gets, or raise nodes, or correct gpu_type, in the cluster profile",
    "Node count": "ask for fewer nodes in the cluster profile, or for fewer ranks in the job",
    "Invalid generic resource": "set gpu_type in the cluster profile to a type that `sinfo -o '%P %G'` lists",
    "Invalid feature": "set constraint in the cluster profile to features that `sinfo -o '%P %f'` lists",
    "job submit limit": "wait until jobs of yours have ended, or ask for a shorter --chain",
    "job dependency": "the job that it waits for is gone; submit without it",
}


class NoSlurm(ClusterError):
    """There are no Slurm commands on this machine."""


class SlurmSilent(ClusterError):
    """The controller or the accounting daemon did not answer."""


class SlurmRefused(ClusterError):
    """The command ran and said no; `reason` is what it printed."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def slurm_is_here() -> bool:
    """Whether this machine has Slurm's commands; asks nobody."""
    return shutil.which("sbatch") is not None and shutil.which("srun") is not None


def run_slurm(
    arguments: Sequence[str], timeout: float = 30.0, *, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a Slurm command to its end.

    Args:
        arguments: the command and its arguments.
        timeout: seconds to wait for it.
        text: its standard input.

    Raises:
        NoSlurm: there is no such command.
        SlurmSilent: Slurm did not answer.
        SlurmRefused: it ended with another status than 0.
    """
    command = " ".join(arguments)
    try:
        done = subprocess.run(
            list(arguments),
            input="" if text is None else text,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=slurm_environment(os.environ),
        )
    except FileNotFoundError:
        raise NoSlurm(no_slurm(arguments[0])) from None
    except subprocess.TimeoutExpired:
        raise SlurmSilent(
            f"`{command}` had no answer after {timeout:g} s; is Slurm's controller up? Try: sinfo"
        ) from None
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip()).replace("\n", "\n  ")
        if any(words in output for words in _SILENCE):
            raise SlurmSilent(f"Slurm does not answer. `{command}` says:\n  {output}\nTry later, or ask: scontrol ping")
        raise SlurmRefused(explain(command, output, done.returncode), output)
    return done


def no_slurm(command: str) -> str:
    """The message where there is no Slurm."""
    return (
        f"no '{command}' on this machine: it has no Slurm, or it is not on PATH. "
        "Log in to a node of the cluster, or train here: srlhpc run JOB"
    )


def explain(command: str, output: str, status: int) -> str:
    """Slurm's own words and what to do about them."""
    remedy = next((remedy for words, remedy in _REMEDIES.items() if re.search(re.escape(words), output, re.I)), None)
    head = f"`{command}` failed ({status})" + (f":\n  {output}" if output else " without a word")
    if remedy is None and command.startswith("sbatch"):
        remedy = "correct in the cluster profile (roles, sbatch) what Slurm names here"
    return f"{head}\nWhat to do: {remedy}." if remedy else head


def slurm_environment(outer: Mapping[str, str]) -> dict[str, str]:
    """The environment of Slurm's commands, which jobs inherit.

    Nothing in it overrides what the commands are told on their command line, or makes ranks part of another world.
    """
    return without_threads(outside_any_world(outer)) | {"LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "standard"}
