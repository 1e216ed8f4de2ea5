"""What a job's batch script and foreman wrote before they ended: the line that killed them, and what helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from srlhpc.runs.paths import RunPaths
from srlhpc.runs.slurm_output import is_slurms, tail
from srlhpc.slurm.batch_mark import FOREMAN

_SHOWN = 6
_FURTHER = re.compile(r"requeueing job \d+.*\n")
"""The last word of an earlier restart, whose output is in the same file."""
_NO_FILE = re.compile(r"not found|No such file|cannot execute|Permission denied|bad interpreter")
_NO_MODULE = re.compile(r"No module named|ImportError|cannot open shared object")
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded")
_OF_THE_SCRIPT = re.compile(r"slurm_script: line \d+: ")


class BatchOutput(NamedTuple):
    """The end of a job's output."""

    line: str
    """The one that says most."""
    lines: tuple[str, ...]
    """The last ones."""
    advice: str


def batch_output(paths: RunPaths, job: str, python: str) -> BatchOutput | None:
    """The last words of a job; None if it wrote none, as after `kill -9`.

    Args:
        paths: the run.
        job: its id.
        python: the interpreter of its profile.
    """
    said = tail(paths.slurm_folder / f"{job}_0_log.err")
    begun = [match.end() for match in _FURTHER.finditer(said)]
    lines = [line.rstrip() for line in said[begun[-1] if begun else 0 :].splitlines() if line.strip()]
    lines = [
        _OF_THE_SCRIPT.sub("", line[found.start() :]) if (found := _OF_THE_SCRIPT.search(line)) else line
        for line in lines
    ]
    lines = [line for line in lines if not is_slurms(line)]
    if not lines:
        return None
    line = _telling(lines, python)
    shown = [line for line in lines[:-_SHOWN] if line.startswith(FOREMAN)][-_SHOWN:] + lines[-_SHOWN:]
    return BatchOutput(line, tuple(shown), _advice(line, python, paths.folder))


def is_missing(python: str, words: str) -> bool:
    """Whether a shell says that it cannot run the interpreter."""
    return python in words and _NO_FILE.search(words) is not None


def lacks_a_module(words: str) -> bool:
    """Whether Python, or the loader of a library, says that a package is not there."""
    return _NO_MODULE.search(words) is not None


def _telling(lines: Sequence[str], python: str) -> str:
    """The last line that is known to say why; else the last one."""

    def tells(line: str) -> bool:
        known = line.startswith(FOREMAN) or _NO_ROOM.search(line) or lacks_a_module(line)
        return bool(known) or is_missing(python, line)

    return next((line for line in reversed(lines) if tells(line)), lines[-1])


def _advice(line: str, python: str, folder: Path) -> str:
    if is_missing(python, line):
        return f"correct `python` in the cluster profile: the node cannot run {python}; then resume with --cluster NAME"
    if line.startswith(f"{FOREMAN}module load"):
        return "correct `modules` in the cluster profile (`module avail` lists them); then resume with --cluster NAME"
    if line.startswith(f"{FOREMAN}set-up line"):
        return "correct `setup` in the cluster profile; then resume with --cluster NAME"
    if lacks_a_module(line):
        return (
            f"install srlhpc and what the job needs for {python}, or let `python` of the cluster profile name another"
        )
    if _NO_ROOM.search(line):
        return f"make room where {folder} is, then resume"
    if line.startswith(FOREMAN):
        return "correct what it names, then resume"
    return (
        f"all of its output is in {folder}/slurm; `srlhpc doctor --cluster NAME` tries modules, set-up lines and Python"
    )
