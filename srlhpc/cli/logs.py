"""`srlhpc logs`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import click

from srlhpc.cli.options import open_run, root_option, say
from srlhpc.data.atomic import read_json
from srlhpc.errors import UserError, did_you_mean
from srlhpc.plan.roles import role_of
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.state import goes_on


@click.command("logs")
@click.argument("run")
@click.option("-f", "--follow", is_flag=True, help="Follow the logs until the run ends.")
@click.option("--role", metavar="ROLE", help="Only ranks of that role, for example actor.")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Only that rank.")
@click.option("--attempt", "number", type=click.IntRange(min=1), metavar="K", help="Of that attempt; else the last.")
@root_option
def command(run: str, follow: bool, role: str | None, rank: int | None, number: int | None, root: str | None) -> None:
    """What the ranks of RUN wrote: one log after the other, or with -f line by line as they come."""
    paths = open_run(root, run)
    if follow:
        _wait_for_start(paths)
    attempt = _attempt(paths, number)
    files = _wait_for_logs(attempt, role, rank) if follow and number is None else chosen_logs(attempt, role, rank)
    if follow:
        while _follow(paths, attempt, files) and number is None:
            attempt = _attempt(paths, None)
            say(f"attempt {attempt.number}")
            files = _wait_for_logs(attempt, role, rank)
        return
    for path in files:
        if len(files) > 1:
            click.echo(f"==> {label_of(path)} <==")
        with open(path, "rb") as file:
            _copy(file)


def chosen_logs(attempt: AttemptPaths, role: str | None, rank: int | None) -> list[Path]:
    """Logs of an attempt, by rank.

    Raises:
        UserError: none is like that.
    """
    files = sorted(attempt.logs.glob("rank-*.log"))
    found = [path for path in files if (rank is None or _rank_of(path) == rank) and (role in (None, _role_of(path)))]
    if found:
        return found
    if not files:
        raise UserError(f"{attempt.logs} has no logs of ranks; a serial run writes to the terminal only")
    ranks = sorted(_rank_of(path) for path in files if role in (None, _role_of(path)))
    if ranks:
        of = f" of role '{role}'" if role is not None else ""
        raise UserError(f"no log of rank {rank}{of}; there are the ranks {', '.join(map(str, ranks))}")
    wish = " and ".join([f"role '{role}'"] * (role is not None) + [f"rank {rank}"] * (rank is not None))
    raise UserError(f"no log of {wish}{did_you_mean(role or '', sorted({_role_of(path) for path in files}))}")


def label_of(path: Path) -> str:
    """`actor-1` of `rank-00003-actor-1.log`."""
    return path.stem.split("-", 2)[2]


def _role_of(path: Path) -> str:
    return role_of(label_of(path))


def _rank_of(path: Path) -> int:
    return int(path.stem.split("-", 2)[1])


def _attempt(paths: RunPaths, number: int | None) -> AttemptPaths:
    numbers = paths.attempt_numbers()
    if not numbers:
        raise UserError(f"run {paths.name} was never started, so it has no logs")
    if number is not None and number not in numbers:
        raise UserError(f"run {paths.name} has no attempt {number}; it has {', '.join(map(str, numbers))}")
    return paths.attempt(number or numbers[-1])


def _copy(file: BinaryIO) -> None:
    while chunk := file.read(1 << 16):
        click.echo(chunk, nl=False)


def _follow(paths: RunPaths, attempt: AttemptPaths, files: Sequence[Path]) -> bool:
    """Prints what comes until the attempt has ended; returns whether there is a later one."""
    width = max(len(label_of(path)) for path in files) if len(files) > 1 else 0
    look = _Going(paths)
    with ExitStack() as stack:
        opened = [(label_of(path).ljust(width)[:width], stack.enter_context(open(path, "rb"))) for path in files]
        while True:
            # Asked before reading, so that the last lines are read after the end.
            later = paths.attempt_numbers()[-1] > attempt.number
            going = not later and look()
            for label, file in opened:
                _print_lines(label, file)
            if later:
                return True
            if not going:
                say(f"run {paths.name} has ended; see srlhpc status {paths.typed}")
                return False
            time.sleep(0.2)


def _wait_for_start(paths: RunPaths) -> None:
    """Until a job that waits in the queue has begun, or has left the queue."""
    look = _Going(paths)
    if paths.attempt_numbers() or not look():
        return
    say(f"run {paths.name} has not started yet; see srlhpc why {paths.typed}")
    while not paths.attempt_numbers() and look():
        time.sleep(0.2)


def _wait_for_logs(attempt: AttemptPaths, role: str | None, rank: int | None, seconds: float = 60.0) -> list[Path]:
    """The logs of an attempt that has only just begun: its ranks open them when they start."""
    deadline = time.monotonic() + seconds
    planned = (read_json(attempt.attempt) or {}).get("ranks", 1)
    while (
        len(list(attempt.logs.glob("rank-*.log"))) < planned and time.monotonic() < deadline and not _is_over(attempt)
    ):
        time.sleep(0.2)
        planned = (read_json(attempt.attempt) or {}).get("ranks", 1)
    return chosen_logs(attempt, role, rank)


def _is_over(attempt: AttemptPaths) -> bool:
    return attempt.end.exists()


class _Going:
    """Whether a run goes on; asked often, it asks Slurm only now and then."""

    def __init__(self, paths: RunPaths, every_seconds: float = 5.0) -> None:
        self._paths = paths
        self._every_seconds = every_seconds if paths.slurm.exists() else 0.0
        self._asked_at = -math.inf
        self._answer = True

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._asked_at >= self._every_seconds:
            self._answer, self._asked_at = goes_on(self._paths), now
        return self._answer


def _print_lines(label: str, file: BinaryIO) -> None:
    while line := file.readline():
        if not line.endswith(b"\n"):
            # Half a line: the rest is not written yet.
            file.seek(-len(line), 1)
            return
        text = line.decode(errors="replace")
        click.echo(f"{label} | {text}" if label else text, nl=False)
