"""What one MPI rank does: plan -> roles and channels -> the loop -> a clean end or a failure that is written down.

Run as `python -m srlhpc.ranks.mpi_first srlhpc.ranks.rank RUN_DIR ATTEMPT [standby]` by the foreman's launcher.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from srlhpc.comm.death_watch import DeathWatch
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.mpi.deaths import watch_deaths
from srlhpc.comm.mpi.world import (
    MpiTransport,
    MpiWorld,
    abort,
    finalize_or_exit,
    join_world,
    leave_without_the_dead,
)
from srlhpc.comm.node.links import share_links
from srlhpc.comm.transport import RankTransport
from srlhpc.data.atomic import read_json
from srlhpc.errors import ClusterError, UserError, kind_of
from srlhpc.plan.layouts import digest
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.plan.seeds import seed_of
from srlhpc.plan.senders import senders_to
from srlhpc.ranks.building import build_roles
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.coordinator import build_coordinator, build_reporter, library_versions
from srlhpc.ranks.global_generators import seed_generators
from srlhpc.ranks.gpu_binding import bind, device_files, gpus_of_rank, visible_gpus
from srlhpc.ranks.guarded_signals import Handler, guarded
from srlhpc.ranks.guarded_signals import restore as restore_signals
from srlhpc.ranks.inputs import read_plan, read_restored
from srlhpc.ranks.malloc import keep_freed_memory, return_freed_memory
from srlhpc.ranks.matchmaking import build_matchmaker
from srlhpc.ranks.pulse import Pulse
from srlhpc.ranks.standing_by import stand_by
from srlhpc.ranks.wiring import inference_rows
from srlhpc.roles.acting.actor import Actor, StepError
from srlhpc.roles.coordinating.coordinator import StepLostError
from srlhpc.roles.role import IDLE, INFERENCE, STREAM, Backoff, Role, run_roles
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.processes import RANK_VARIABLE, STANDBY, STEP_VARIABLE
from srlhpc.runs.shared_memory import write_down_names
from srlhpc.slurm.allocation import Allocation
from srlhpc.specs.child_processes import die_with_parent
from srlhpc.specs.patience import START_SECONDS

log = logging.getLogger(__name__)

FINALIZE_SECONDS = 10.0
LEAVE_SECONDS = 0.5
"""Time to leave where a rank is dead, so that MPI cannot be finalised: just enough for the last commands to leave."""


def main(arguments: Sequence[str]) -> int:
    """Runs one rank; returns its exit code."""
    if sys.platform == "linux":
        # So that nothing stays after a kill of the launcher.
        die_with_parent()
    # Ctrl-C reaches all processes of a terminal; the foreman takes it, and asks the coordinator for an orderly end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder, number, *how = arguments
    stands_by = how == [STANDBY]
    paths = RunPaths(Path(folder))
    attempt = paths.attempt(int(number))
    plan = read_plan(paths, attempt, serial=False)
    write_down_names(attempt)
    planned = int(os.environ[RANK_VARIABLE])
    if planned:
        keep_freed_memory()
    else:
        # The coordinator is idle but for checkpoints.
        return_freed_memory()
    # On some file systems a name that is looked up too early stays missing for long: first the one that goes away.
    description = (read_json(attempt.standby) if stands_by else None) or read_json(attempt.attempt) or {}
    patience = float(description.get("start_seconds", START_SECONDS))
    try:
        _bind_gpus(plan, planned, paths)
        world = join_world(len(plan.ranks), rank=planned, timeout_seconds=patience)
    except ClusterError as error:
        # Every rank is the first of a world of its own, if the launcher does not speak this MPI's language.
        _write_failure(plan.ranks[planned], attempt, error)
        os._exit(1)
    here = plan.ranks[world.rank]
    logging.basicConfig(
        level=logging.INFO, format=f"%(asctime)s rank {here.rank} {here.label} %(levelname)s %(name)s: %(message)s"
    )
    roles: list[Role] = []
    try:
        with guarded(_kept_signals()):
            world.require_equal({"spec and layouts": digest(plan), **library_versions()}, patience)
            watch = _watch_deaths(plan, world, patience)
            if stands_by:
                stand_by(plan, here, world, attempt, patience)
            with closing(_transport(plan, here, world, watch, patience)) as transport:
                context = RankContext(plan, here, paths, attempt, transport, world)
                some_are_lost = _coordinate(context) if here.rank == 0 else _play(context, roles)
    except StepLostError as error:
        log.error("%s", error)
        abort(1)
    except BaseException as error:
        _write_failure(here, attempt, error)
        # MPI is not finalised afterwards: it would wait for ranks that know nothing of this.
        for role in roles:
            role.close_environments()
        os._exit(1)
    _leave(world, watch, some_are_lost)
    return 0


def _leave(world: MpiWorld, watch: DeathWatch | None, some_are_lost: bool) -> None:
    if some_are_lost or (watch is not None and watch.sees_a_death):
        leave_without_the_dead(world, LEAVE_SECONDS)
    finalize_or_exit(world, FINALIZE_SECONDS)


def _watch_deaths(plan: Plan, world: MpiWorld, patience: float) -> DeathWatch | None:
    mortal = {rank.rank for rank in plan.ranks if not rank.is_essential}
    return watch_deaths(world, mortal, senders_to(plan, world.rank) if world.rank in mortal else (), patience)


def _kept_signals() -> dict[int, Handler]:
    """Handlers of the signals that ask for an end or report a dead rank: no environment may change them."""
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    return {name: handler for name in names if (handler := signal.getsignal(name)) is not None}


def _transport(plan: Plan, here: RankPlan, world: MpiWorld, watch: DeathWatch | None, patience: float) -> RankTransport:
    """What carries this rank's messages; called on all ranks at once."""
    rank_of = {role.address: role.rank for role in plan.roles}
    neighbours = {rank for rank, node in enumerate(world.nodes) if node == world.node}
    on_node = share_links(world, rank_of, inference_rows(plan, neighbours), patience)
    over_mpi = MpiTransport(world.comm, rank_of, watch)
    return RankTransport(here.rank, rank_of, InProcessTransport(), over_mpi, on_node)


def _coordinate(context: RankContext) -> bool:
    """Rank 0; returns whether any rank was lost."""
    context = replace(context, restored=read_restored(context.paths, context.attempt))
    matchmaker = build_matchmaker(context)
    coordinator = build_coordinator(context, matchmaker=matchmaker)
    roles: list[Role] = [coordinator] if matchmaker is None else [matchmaker, coordinator]
    # Groups wait for matches.
    backoff = IDLE if matchmaker is None else STREAM
    run_roles(roles, backoff, keep_going=lambda: not coordinator.is_done)
    for role in roles:
        role.close()
    return coordinator.has_lost_ranks


def _play(context: RankContext, roles: list[Role]) -> bool:
    """Every other rank; returns whether any rank was lost.

    `roles` takes those that have environments, for the caller to close them if this raises.
    """
    here, attempt, seed = context.here, context.attempt, context.plan.spec.seed
    seed_generators(seed_of(seed, "building", here.rank, context.restart))
    for role in build_roles(context):
        roles.append(role)
    # After building, which may have loaded torch or moved a generator, so that all begin to play from their own.
    seed_generators(seed_of(seed, "playing", here.rank, context.restart))
    restore_signals()
    for role in roles:
        if isinstance(role, Actor):
            role.start(context.restart)
    reporter = build_reporter(context, roles)
    log.info("up on %s, pid %d, GPUs: %s", socket.gethostname(), os.getpid(), ", ".join(_gpus()) or "none")
    pulse = Pulse(attempt.pulse(here.rank))
    pulse.start()

    def goes_on() -> bool:
        pulse.rounds += 1
        return not reporter.may_exit

    run_roles([*roles, reporter], _backoff(here), keep_going=goes_on)
    for role in (*roles, reporter):
        role.close()
    return bool(reporter.dead)


def _backoff(here: RankPlan) -> Backoff:
    return INFERENCE if any(role.row.answers for role in here.roles) else STREAM


def _bind_gpus(plan: Plan, rank: int, paths: RunPaths) -> None:
    """Lets this process see its own GPUs only. torch looks when it is loaded, so with GPUs this comes before.

    Raises:
        GpuError: the node grants fewer than planned.
    """
    allocation = Allocation.from_json(read_json(paths.allocation) or {}) if STEP_VARIABLE in os.environ else None
    chosen = gpus_of_rank(plan, rank, allocation, os.environ, device_files())
    if chosen is not None:
        assert not chosen or "torch" not in sys.modules
        bind(os.environ, chosen)


def _gpus() -> tuple[str, ...]:
    return visible_gpus(os.environ, 0)


def _write_failure(here: RankPlan, attempt: AttemptPaths, error: BaseException) -> None:
    text = traceback.format_exc()
    role = here.roles[0]
    content = {
        "rank": here.rank,
        "role": role.name,
        "index": role.index,
        "label": here.label,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "time": time.time(),
        "kind": kind_of(error),
        "message": str(error) if isinstance(error, (UserError, ClusterError, StepError)) else _one_line(error),
        "traceback": text,
    }
    # The rank must leave, whatever the disk does; the script around it tells its exit status.
    with suppress(OSError):
        RunPaths(attempt.folder.parent.parent).reserve.write_json(attempt.failure(here.rank), content)
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
