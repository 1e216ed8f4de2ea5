"""What Slurm says of itself: for `slurm_rules`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from srlhpc.errors import ClusterError
from srlhpc.slurm.commands import NoSlurm, SlurmRefused, SlurmSilent, run_slurm

_PING_SECONDS = 15.0


@dataclass(frozen=True)
class SlurmFacts:
    """What the controller says."""

    settings: Mapping[str, str]
    """Settings by name, as `scontrol show config` prints them."""
    partitions: Mapping[str, Mapping[str, str]]
    """Settings by partition."""
    accounting_error: str = ""
    """What `sacct` printed; empty if it answers."""


def read_slurm() -> SlurmFacts:
    """Asks the controller and accounting.

    Raises:
        NoSlurm: there are no Slurm commands here.
        SlurmSilent: the configuration is missing, or the controller does not answer.
    """
    path = os.environ.get("SLURM_CONF")
    if path and not Path(path).exists():
        raise SlurmSilent(f"SLURM_CONF names {path}, which does not exist; set it to the cluster's slurm.conf")
    _ping()
    settings = dict(re.findall(r"(?m)^(\w+)\s*= (.*?)\s*$", run_slurm(["scontrol", "show", "config"]).stdout))
    partitions = parse_partitions(run_slurm(["scontrol", "show", "partition", "-o"]).stdout)
    return SlurmFacts(settings, partitions, _accounting_error())


def parse_partitions(text: str) -> dict[str, dict[str, str]]:
    """`PartitionName=cpu Default=YES ...`, one a line."""
    rows = [dict(word.partition("=")[::2] for word in line.split()) for line in text.splitlines() if line.strip()]
    return {row["PartitionName"]: row for row in rows if "PartitionName" in row}


def _ping() -> None:
    """A controller that is stopped or cut off would keep every other command waiting for much longer."""
    try:
        output = run_slurm(["scontrol", "ping"], timeout=_PING_SECONDS).stdout
    except NoSlurm:
        raise
    except (SlurmSilent, SlurmRefused) as error:
        raise SlurmSilent(f"does not answer: {_words(str(error)).partition(';')[0]}") from None
    if " UP" not in output:
        raise SlurmSilent(f"does not answer: {_words(output)}")


def _words(text: str) -> str:
    """The line that says most: on a controller that is down, else the last of what a command has printed."""
    printed = [line.strip() for line in text.splitlines() if line.startswith("  ")] or text.splitlines()
    down = [line for line in printed if line.endswith(" is DOWN")]
    return re.sub(r"^\w+: (error|fatal): ", "", (down or printed[-1:])[0])


def _accounting_error() -> str:
    try:
        run_slurm(["sacct", "-n", "-X", "-o", "JobID"], timeout=_PING_SECONDS)
    except SlurmRefused as error:
        return error.reason.splitlines()[-1]
    except ClusterError as error:
        return str(error).splitlines()[0]
    return ""
