"""`srlhpc why`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from srlhpc.cli.options import open_run, root_option
from srlhpc.launch.failures import Failure, failures
from srlhpc.launch.run_state import run_state
from srlhpc.launch.rundir import AttemptPaths, RunPaths

_TRACEBACK_LINES = 15
_LOG_LINES = 10
_CHAIN = "\nThe above exception was the direct cause of the following exception:\n"
_SLURM_ADVICE = {
    "timed out": "the time limit was reached; set requeue in the cluster profile, or use --chain or more --time",
    "node failed": "a node went down; resume, and tell the administrators if it comes again",
    "out of memory": "raise memory_mb_per_rank in the cluster profile, or use fewer environments or a smaller batch",
    "preempted": "a job of higher priority took the nodes; set requeue in the cluster profile, or resume",
}
"""What Slurm has done to a run, and what helps."""


@click.command("why")
@click.argument("run")
@root_option
def command(run: str, root: str | None) -> None:
    """What failed first in the last attempt of RUN, and what to do."""
    paths = open_run(root, run)
    click.echo("\n".join(explanation(paths)))


def explanation(paths: RunPaths) -> Iterator[str]:
    """Lines that name the first failure: role, rank, host, signal or traceback, and what to do."""
    state = run_state(paths)
    attempt = paths.last_attempt()
    found = failures(attempt) if attempt else []
    how = f"run {paths.name}, attempt {state['attempt']}: {state['state']}"
    yield how + (f" ({state['reason']})" if state["reason"] else "")
    if attempt and found:
        yield from _first(attempt, found)
        if state["state"] in ("finished", "running"):
            yield "the others went on without it"
    elif state["state"] in _SLURM_ADVICE:
        yield str(state["message"] or state["state"])
        yield f"what to do: {_SLURM_ADVICE[state['state']]}"
    elif state["state"] != "failed":
        yield "nothing failed"
    elif state["reason"] == "killed":
        yield from _killed(state["message"] or "")
    else:
        yield str(state["message"])
    if state["state"] in ("failed", "interrupted", "cancelled", *_SLURM_ADVICE):
        yield f"go on from {state['last_checkpoint'] or 'the beginning'}: srlhpc resume {paths.name}"


def _first(attempt: AttemptPaths, found: list[Failure]) -> Iterator[str]:
    first = found[0]
    yield f"first failure: {first.line}"
    yield f"  role {first.role}, rank {first.rank}" + (f", host {first.host}" if first.host else "")
    shown = shortened(first.traceback) or _end_of_log(attempt, first)
    yield from (f"  | {line}" for line in shown)
    yield f"what to do: {first.advice}"
    if attempt.log(first.rank, first.label).exists():
        yield f"its log: {attempt.log(first.rank, first.label)}"
    if len(found) > 1:
        yield f"later: {'; '.join(failure.line for failure in found[1:6])}" + (" ..." if len(found) > 6 else "")


def shortened(traceback: str) -> list[str]:
    """The end of a traceback; of a chain, the end of the first exception, where it began, and the last line."""
    first, *later = traceback.strip().split(_CHAIN)
    lines = first.rstrip().splitlines()
    shown = lines[-_TRACEBACK_LINES:] if len(lines) <= _TRACEBACK_LINES else ["...", *lines[-_TRACEBACK_LINES:]]
    return [*shown, "...", later[-1].rstrip().splitlines()[-1]] if later else shown


def _end_of_log(attempt: AttemptPaths, failure: Failure) -> list[str]:
    try:
        text = attempt.log(failure.rank, failure.label).read_text(errors="replace")
    except OSError:
        return []
    return text.rstrip().splitlines()[-_LOG_LINES:]


def _killed(message: str) -> Iterator[str]:
    yield f"{message}; no rank has written a failure"
    yield "what to do: this comes from `kill -9`, from a machine that went down, or from the kernel when memory"
    yield "  runs out (`dmesg | grep -i oom` tells); then use fewer ranks, fewer copies or a smaller batch"
