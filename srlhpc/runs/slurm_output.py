"""What Slurm's daemons wrote into the output of a job: why they killed something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from srlhpc.runs.paths import AttemptPaths, RunPaths

_TAIL_BYTES = 1 << 16
_DAEMONS = re.compile(r"slurm(step)?d(-\S+)?: |srun: (error|Job step|Force Terminated|Terminating)|JOB \d+ ON ")
_LABEL = re.compile(r"^\s*\d+: ")
"""What `srun --label` puts before a line."""
_OUT_OF_MEMORY = re.compile(r"oom.?kill|out.of.memory|exceeded (job |step )?memory limit", re.IGNORECASE)
_BEGIN = "starting "
"""The foreman's line at the start of the ranks."""


def slurm_output(paths: RunPaths, attempt: AttemptPaths | None) -> list[str]:
    """Lines of Slurm's daemons on the last attempt, in order, each once."""
    lines = tail(attempt.logs / "srun.log").splitlines() if attempt else []
    for file in _newest(paths.slurm_folder):
        # A requeued job appends; what came before the ranks were last started is of an earlier attempt.
        text = tail(file)
        # All of it where that line is not there: -1 + 1 is 0.
        lines += text[text.rfind(_BEGIN) + 1 :].splitlines()
    return list(dict.fromkeys(_LABEL.sub("", line, count=1).strip() for line in lines if is_slurms(line)))


def is_slurms(line: str) -> bool:
    """Whether one of Slurm's daemons or commands has written a line."""
    return _DAEMONS.search(line) is not None


def out_of_memory(words: Sequence[str]) -> str | None:
    """The line that says that memory ran out."""
    return next((line for line in words if _OUT_OF_MEMORY.search(line)), None)


def _newest(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.err"), key=lambda file: file.stat().st_mtime)
    return files[-1:]


def tail(file: Path) -> str:
    """The end of a file; empty if it cannot be read."""
    try:
        with open(file, "rb") as opened:
            opened.seek(max(0, file.stat().st_size - _TAIL_BYTES))
            return opened.read().decode(errors="replace")
    except OSError:
        return ""
