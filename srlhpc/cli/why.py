"""`srlhpc why`."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from srlhpc.cli.options import open_run, root_option
from srlhpc.data.atomic import read_json
from srlhpc.errors import ClusterError, UserError, kind_named
from srlhpc.runs.batch_output import BatchOutput
from srlhpc.runs.failures import Failure, failures, signal_name
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.replay_state import resume_lines
from srlhpc.runs.slurm_output import slurm_output
from srlhpc.runs.state import SAID_BY_STATE, job_ids, last_output, run_state, silent_ranks
from srlhpc.slurm.jobs import JobState, SlurmJobs
from srlhpc.slurm.pending_reasons import explained
from srlhpc.slurm.states import CANCELLED, WORDS, words_that

_TRACEBACK_LINES = 15
_LOG_LINES = 10
_SLURM_LINES = 6
_CHAIN = "\nThe above exception was the direct cause of the following exception:\n"
_BY_SLURM = words_that(lambda word: word.advice)
"""States of runs that Slurm has ended."""
_FOR_NODES = ("", "Resources", "Priority", "Nodes required for job are DOWN", "ReqNodeNotAvail")
"""Slurm's reasons of a job that waits for nodes; it gives components of a heterogeneous job none for long."""
_NOT_BY_RANKS = words_that(lambda word: word.ends_ranks)
"""Ranks that died then did so because of it."""
_PLAIN = {
    "interrupted": "it was asked to end",
    "unknown": "its files do not tell whether it waits or has ended",
    **{name: word.meaning for name, word in WORDS.items() if word.meaning},
}


@click.command("why")
@click.argument("run")
@root_option
def command(run: str, root: str | None) -> None:
    """What failed first in the last attempt of RUN, and what to do."""
    paths = open_run(root, run)
    click.echo("\n".join(explanation(paths)))


def explanation(paths: RunPaths) -> Iterator[str]:
    """Lines that name the first failure: role, rank, host, signal or traceback, Slurm's verdict, and what to do."""
    jobs = SlurmJobs(job_ids(paths))
    state = run_state(paths, jobs)
    attempt = paths.last_attempt()
    found = _failed_first(attempt, state["reason"]) if attempt else []
    name = state["state"]
    reason = None if state["reason"] in SAID_BY_STATE else state["reason"]
    yield f"run {paths.name}, attempt {state['attempt']}: {name}" + (f" ({reason})" if reason else "")
    if jobs.warning is not None:
        yield f"Slurm could not be asked: {jobs.warning}"
    queued = jobs.queued(str(state["slurm_job"]))
    if name == "pending" or (name != "finished" and queued and queued.waits):
        yield from _waiting(paths, queued)
        if attempt:
            yield from _last_attempt(attempt)
        return
    words = slurm_output(paths, attempt) if name in ("failed", *_BY_SLURM) else []
    if attempt and found and name not in _NOT_BY_RANKS and not kind_named(state["reason"]).is_of_all:
        yield from _first(attempt, found)
        if name in ("finished", "running"):
            yield "the other ranks continued without it"
    else:
        yield from _without_failure(paths, state, words)
    yield from _so_far(paths, state)
    if name in ("failed", "interrupted", CANCELLED.name, *_BY_SLURM):
        yield from _slurms_verdict(state, jobs, words)
        yield f"resume from {state['last_checkpoint'] or 'the beginning'}: srlhpc resume {paths.typed}"
        if state["last_checkpoint"]:
            yield from _replay(paths)


def _failed_first(attempt: AttemptPaths, reason: str | None) -> list[Failure]:
    """Ranks that failed by themselves, the first one first."""
    found = failures(attempt)
    if reason != "start":
        return found
    # Those that came in time were killed because others did not.
    return [failure for failure in found if failure.message != f"was killed by {signal_name(signal.SIGKILL)}"]


def _replay(paths: RunPaths) -> Iterator[str]:
    """What becomes of replay then."""
    from srlhpc.specs.load import load_experiment

    # A spec that cannot be read is what `resume` says, too.
    with suppress(UserError):
        yield from resume_lines(load_experiment(paths.spec), serial=_is_serial(paths))


def _so_far(paths: RunPaths, state: Mapping[str, Any]) -> Iterator[str]:
    """What hangs, and how the attempts before went."""
    running = state["state"] == "running"
    if running:
        yield from silent_ranks(state)
    if state["crash_loop"]:
        yield f"{state['crash_loop']}; `srlhpc logs {paths.typed} --attempt N` shows each"
    elif running and state["attempt"] > 1:
        yield from _last_attempt(paths.attempt(state["attempt"] - 1))


def _without_failure(paths: RunPaths, state: Mapping[str, Any], words: Sequence[str]) -> Iterator[str]:
    """What is known where no rank failed, or ranks failed because of something else."""
    name, message = state["state"], state["message"] or ""
    if name in _BY_SLURM:
        yield message or name
        yield f"what to do: {WORDS[name].advice}"
    elif name in _PLAIN:
        yield message or _PLAIN[name]
    elif name != "failed":
        yield "nothing failed" + (" in this attempt" if name == "running" else "")
    elif kind_named(state["reason"]).is_of_all:
        yield message
        yield f"what to do: {kind_named(state['reason']).advice}"
    elif state["reason"] == "checkpoint":
        yield message
        yield "what to do: make room there (or name checkpoint_spare in the cluster profile), then resume"
    elif state["reason"] == "killed" and not state["slurm_job"] and _is_serial(paths):
        yield from _serial_killed(message)
    elif state["reason"] == "killed":
        yield from _killed(message, words, last_output(paths, state["slurm_job"]) if state["slurm_job"] else None)
    else:
        yield message


def _waiting(paths: RunPaths, job: JobState | None) -> Iterator[str]:
    """A job in the queue: why it does not run."""
    if job is None:
        yield "it was never started"
        return
    never, needs = _nodes_needed(paths)
    if never is not None:
        yield f"job {job.id} can never start: {never}"
        yield f"what to do: srlhpc cancel {paths.typed}; submit again with fewer ranks, or roles that may share nodes"
        return
    meaning, remedy = explained(job.reason, job.id)
    yield f"job {job.id} waits: {meaning}" + (f" (Slurm says {job.reason})" if job.reason else "")
    if needs is not None and job.reason in _FOR_NODES:
        yield f"the job {needs}"
    yield f"what to do: {remedy}"
    if job.start:
        yield f"Slurm expects to start it at {job.start}"


def _nodes_needed(paths: RunPaths) -> tuple[str | None, str | None]:
    """Why the run's job can never start, and what it waits for; None where that cannot be told."""
    from srlhpc.slurm.allocation import Allocation
    from srlhpc.slurm.partitions import read_nodes
    from srlhpc.slurm.start_outlook import outlook, shortage

    written = read_json(paths.allocation)
    try:
        nodes = read_nodes() if written else []
    except ClusterError:
        nodes = []
    if not written or not nodes:
        return None, None
    allocation = Allocation.from_json(written)
    return shortage(allocation, nodes), outlook(allocation, nodes)


def _last_attempt(attempt: AttemptPaths) -> Iterator[str]:
    """How an attempt before this one ended, if that was written down."""
    end = read_json(attempt.end) or {}
    reason, message = end.get("reason"), end.get("message")
    if end:
        yield f"attempt {attempt.number} ended: {end.get('state')} ({reason})" + (f": {message}" if message else "")


def _slurms_verdict(state: Mapping[str, Any], jobs: SlurmJobs, words: Sequence[str]) -> Iterator[str]:
    """What Slurm itself says of the job that ended, and its daemons' last words."""
    if state["slurm_job"] and jobs.warning is None:
        job = jobs.ended(str(state["slurm_job"]))
        if job is None:
            yield f"Slurm: no longer knows job {state['slurm_job']}"
        elif job.verdict not in (state["message"] or ""):
            yield f"Slurm: {job.verdict}"
    yield from (f"  | {line}" for line in words[-_SLURM_LINES:])


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


def _killed(message: str, words: Sequence[str], said: BatchOutput | None) -> Iterator[str]:
    """A job, or all processes of a local run, ended without a word in the run's files."""
    yield message
    if said is not None:
        yield from (f"  | {line}" for line in said.lines)
        yield f"what to do: {said.advice}"
    elif words:
        yield "no rank has written a failure; what to do: Slurm's own words are below"
    else:
        yield "no rank has written a failure"
        yield "what to do: this comes from `kill -9`, from a machine that went down, or from the kernel when memory"
        yield "  runs out (`dmesg | grep -i oom` shows it); then use fewer ranks, fewer environments or a smaller batch"


def _is_serial(paths: RunPaths) -> bool:
    attempt = paths.last_attempt()
    return attempt is not None and bool((read_json(attempt.attempt) or {}).get("serial"))


def _serial_killed(message: str) -> Iterator[str]:
    """The process of a serial run, in which the environment plays too, ended without a word."""
    yield message
    yield "the environment ended it (`os._exit`, `os.abort`, a timer), its native code crashed, or it was `kill -9` or"
    yield "  the kernel when memory ran out (`dmesg | grep -i oom` shows it)"
    yield "what to do: resume with the variable PYTHONFAULTHANDLER=1, which shows where native code crashes"
