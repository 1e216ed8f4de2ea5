"""`srlhpc cancel`."""

from __future__ import annotations

import os
import signal
import time

import click

from srlhpc.cli.options import open_run, root_option, say
from srlhpc.data import mailbox
from srlhpc.data.atomic import write_json
from srlhpc.data.forgiving import FileSystemLostError, read_surely
from srlhpc.data.server_time import age
from srlhpc.errors import ClusterError
from srlhpc.runs.lease import Holder
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.state import is_running, job_ids, run_state
from srlhpc.slurm.commands import SlurmRefused, SlurmSilent, run_slurm
from srlhpc.slurm.jobs import queued_jobs
from srlhpc.slurm.state import RENEWED_SECONDS


@click.command("cancel")
@click.argument("run")
@root_option
def command(run: str, root: str | None) -> None:
    """Let RUN write a checkpoint and end, as Ctrl-C in its terminal does; its jobs leave the queue."""
    paths = open_run(root, run)
    ids = job_ids(paths)
    try:
        if ids and _cancel_jobs(paths, ids):
            return
    except SlurmSilent as error:
        if not _ask_by_mailbox(paths):
            raise
        say(f"warning: {str(error).splitlines()[0]} The run was asked by a file to end; jobs that wait stay queued")
        return
    holder = is_running(paths)
    if holder is None:
        say(f"run {paths.name} does not run: it is {run_state(paths)['state']}")
        return
    _ask_foreman(paths, holder)
    say(f"run {paths.name} will write a checkpoint and end; srlhpc status {paths.typed} shows when")


def _ask_foreman(paths: RunPaths, holder: Holder) -> None:
    """Asks the coordinator of a local run; where its mailbox cannot be written, the foreman, as Ctrl-C would.

    Raises:
        ClusterError: neither is possible.
    """
    stop = paths.attempt(holder.attempt).stop
    try:
        mailbox.post(stop)
    except OSError as error:
        if not holder.process.is_here:
            raise ClusterError(
                f"{stop}: cannot be written: {error.strerror}; press Ctrl-C in its terminal on {holder.process.host}, "
                f"or there: kill -INT {holder.process.pid}"
            ) from None
        say(f"warning: {stop}: cannot be written: {error.strerror}; interrupting its process {holder.process.pid}")
        _interrupt(holder.process.pid)


def _interrupt(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGINT)
    except PermissionError:
        raise ClusterError(f"process {pid} is another user's; ask them to end it") from None


def _ask_by_mailbox(paths: RunPaths) -> bool:
    """Asks the running attempt's coordinator itself; False if none seems to run."""
    attempt, renewed_ago = paths.last_attempt(), age(paths.lease)
    if attempt is None or attempt.end.exists() or renewed_ago is None or renewed_ago > RENEWED_SECONDS:
        return False
    try:
        mailbox.post(attempt.stop)
    except OSError:
        return False
    return True


def _cancel_jobs(paths: RunPaths, ids: list[str]) -> bool:
    """Takes waiting jobs out of the queue and asks the running one to end; False if there is none.

    Raises:
        ClusterError: Slurm does not answer.
    """
    active = [job for job in queued_jobs(ids).values() if job.is_active]
    # First those that wait, so that none of them starts when the running one ends.
    for job in sorted(active, key=lambda job: job.runs):
        if job.runs:
            # Even if it is being requeued at this moment, its next restart ends at once.
            _write_down(paths, job.id)
            _end_running(job.id)
            say(f"run {paths.name}, job {job.id}: will write a checkpoint and end; see srlhpc status {paths.typed}")
        else:
            run_slurm(["scancel", job.id])
            if job.waits:
                _write_down(paths, job.id)
            say(f"run {paths.name}: job {job.id} left the queue")
    return bool(active)


def _end_running(job: str) -> None:
    """Asks the foreman to end; a job that went back into the queue in this moment leaves it."""
    try:
        # To the foreman alone: a plain scancel leaves only KillWait for the checkpoint.
        run_slurm(["scancel", "--batch", "--signal=TERM", job])
    except SlurmRefused:
        # Also refused where only some components of a heterogeneous job are left, though the foreman got the signal.
        state = queued_jobs([job]).get(job)
        if state is not None and state.waits:
            run_slurm(["scancel", job])


def _write_down(paths: RunPaths, job: str) -> None:
    """Marks a job: one that leaves the queue may say nothing itself, and one that is requeued must know.

    Slurm is told in any case: a full disk must not keep a job running.
    """
    try:
        content = read_surely(paths.slurm) or {}
        for entry in content.get("jobs", []):
            if str(entry["id"]) == job:
                entry["cancelled"] = time.time()
        paths.reserve.lend(lambda: write_json(paths.slurm, content))
    except (OSError, FileSystemLostError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        say(
            f"warning: {paths.slurm}: cannot be written: {why}; if job {job} comes back into the queue, cancel it again"
        )
