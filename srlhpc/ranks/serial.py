"""A serial run: the same roles in one process, polled in turn, in lock-step; deterministic, with breakpoints.

The world stands still while a checkpoint is written, and the checkpoint holds all of it: every role and what is under
way between them. So going on from it gives the same bits as never having stopped. What cannot be saved, such as an
environment without `save_state`, begins anew at every checkpoint, in the undisturbed run too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TypeVar

from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.transport import RankTransport
from srlhpc.plan.plan import RolePlan
from srlhpc.plan.seeds import seed_of
from srlhpc.ranks.actors import build_actor
from srlhpc.ranks.building import BUILDERS, build_role
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.coordinator import build_coordinator, build_reporter
from srlhpc.ranks.global_generators import seed_generators
from srlhpc.ranks.inputs import read_plan, read_restored
from srlhpc.ranks.lock_step import LockStep
from srlhpc.ranks.matchmaking import build_matchmaker
from srlhpc.ranks.serial_pause import SerialPause
from srlhpc.ranks.serial_state import SerialState
from srlhpc.ranks.serving import build_evaluator, build_policy_server
from srlhpc.ranks.trainers import build_trainer
from srlhpc.roles.role import Role
from srlhpc.runs.paths import AttemptPaths, RunPaths

_R = TypeVar("_R", bound=Role)

log = logging.getLogger(__name__)


def run_serial(paths: RunPaths, attempt: AttemptPaths) -> None:
    """Trains in this process until the run ends; the outcome is in `attempt.outcome`."""
    plan = read_plan(paths, attempt, serial=True)
    restored = read_restored(paths, attempt)
    links = InProcessTransport()
    transport = RankTransport(0, {role.address: 0 for role in plan.roles}, links, None)
    context = RankContext(plan, plan.ranks[0], paths, attempt, transport, restored=restored)
    seed, updates = plan.spec.seed, int(restored["meta"]["updates"]) if restored is not None else 0
    seed_generators(seed_of(seed, "building", 0, updates))
    # Trainers first: those who act read their parameters directly.
    trainers = [build_trainer(context, role) for role in plan.named("trainer")]
    servers = [build_policy_server(context, role) for role in plan.named("policy_server")]
    with ExitStack() as environments:
        evaluators = _built(context, plan.named("evaluator"), build_evaluator, environments)
        actors = _built(context, plan.named("actor"), build_actor, environments)
        others = _built(context, (role for role in plan.roles if role.name in _others()), build_role, environments)
        matchmaker = build_matchmaker(context)
        if matchmaker is not None:
            others.append(matchmaker)
        can_save = all(actor.can_save for actor in actors)
        if not can_save:
            log.warning(
                "environment %s offers no save_state: every checkpoint starts new episodes, in this run as in one that "
                "goes on from it, so that resuming stays exact",
                plan.spec.environment.factory,
            )
        state = SerialState(plan, links, actors, servers, trainers, evaluators, others, can_save)
        coordinator = build_coordinator(
            context,
            roles_state=lambda: state.save(coordinator),
            shard_parts=state.shard_parts,
            matchmaker=matchmaker,
        )
        # Building has moved them. A checkpoint with generators replaces this.
        seed_generators(seed_of(seed, "playing", 0, updates))
        state.begin(restored, coordinator)
        reporter = build_reporter(context, [role for role in state.roles if role is not matchmaker])
        LockStep(state.roles, trainers, reporter, coordinator, SerialPause(state.roles, attempt)).run()
        # No error: roles close their own environments.
        environments.pop_all()
    for role in (*state.roles, reporter, coordinator):
        role.close()


def _others() -> set[str]:
    """Roles that a serial run knows nothing of but that they are built and have their turn."""
    return set(BUILDERS) - {"trainer", "policy_server", "evaluator", "actor"}


def _built(
    context: RankContext,
    planned: Iterable[RolePlan],
    build: Callable[[RankContext, RolePlan], _R],
    environments: ExitStack,
) -> list[_R]:
    """The roles; if the run fails, their environments are closed."""
    built = []
    for role in planned:
        built.append(build(context, role))
        environments.callback(built[-1].close_environments)
    return built
