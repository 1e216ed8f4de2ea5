"""One attempt of a plan on this machine: its folder, its description, its foreman."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srlhpc.data.atomic import write_json
from srlhpc.runs.lease import Lease
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.specs.patience import START_SECONDS

if TYPE_CHECKING:
    from srlhpc.launch.fork_server import ForkServer
    from srlhpc.plan.plan import Plan
    from srlhpc.runs.outcome import Outcome


def run_attempt(
    paths: RunPaths,
    lease: Lease,
    plan: Plan,
    overrides: Sequence[str],
    checkpoint: Path | None,
    *,
    serial: bool,
    fork_server: ForkServer | None,
) -> Outcome:
    """Makes the next attempt of a run and stays until it has ended.

    Args:
        paths: the run; its spec is the plan's.
        lease: of the run, taken.
        plan: who does what.
        overrides: what `--set` changed, for the record.
        checkpoint: the one to go on from; None: from the beginning.
        serial: all roles in this process.
        fork_server: what forks the ranks, or None.
    """
    attempt = paths.new_attempt()
    token = None if fork_server is None else fork_server.token
    describe(attempt, plan, overrides, checkpoint, serial=serial, fork_server=token)
    if serial:
        from srlhpc.launch.serial_foreman import SerialForeman
        from srlhpc.ranks.serial import run_serial

        return SerialForeman(paths, attempt, lease, run_serial).run()
    from srlhpc.launch.foreman import Foreman

    return Foreman(paths, attempt, lease, plan.ranks, fork_server=fork_server).run()


def describe(
    attempt: AttemptPaths,
    plan: Plan,
    overrides: Sequence[str],
    checkpoint: Path | None,
    *,
    serial: bool,
    job: str | None = None,
    start_seconds: float = START_SECONDS,
    last_checkpoint_seconds: float | None = None,
    stands_by: bool = False,
    fork_server: str | None = None,
) -> None:
    """Writes down how an attempt is started.

    Args:
        attempt: the attempt.
        plan: who does what.
        overrides: what `--set` changed, for the record.
        checkpoint: the one to go on from.
        serial: all roles in one process.
        job: the Slurm job that it runs in.
        start_seconds: how long ranks wait for each other at the start.
        last_checkpoint_seconds: how long the last checkpoint is tried to be written; None for the usual time.
        fork_server: token of what forks the ranks.
        stands_by: its ranks are started now, and it begins when it is described once more without this.
    """
    with attempt.removed_unless_done():
        made: dict[str, Any] = plan.to_json()
        write_json(attempt.plan, made)
        write_json(attempt.spaces, plan.spaces.to_json())
        write_json(
            attempt.standby if stands_by else attempt.attempt,
            {
                "serial": serial,
                "overrides": list(overrides),
                "checkpoint": checkpoint.name if checkpoint else None,
                "ranks": len(plan.ranks),
                "job": job,
                "fork_server": fork_server,
                "start_seconds": start_seconds,
                **({} if last_checkpoint_seconds is None else {"last_checkpoint_seconds": last_checkpoint_seconds}),
                "host": socket.gethostname(),
                "command": sys.argv,
                "time": time.time(),
            },
        )
