"""A serial run: the same roles in one process, polled in turn, in lock-step; deterministic, with breakpoints.

At an update boundary nothing is in flight: fragments start only when granted, and none is granted while a checkpoint
is due. So a checkpoint holds everything, and going on from it gives the same bits as never having stopped. An
environment that cannot be saved starts new episodes at every checkpoint, in the undisturbed run too.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.transport import RankTransport
from srlhpc.data.layout import Layout
from srlhpc.plan.layouts import block_layout, request_layout
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.plan.seeds import seed_of
from srlhpc.ranks.actors import build_actor
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.coordinator import build_coordinator, build_reporter
from srlhpc.ranks.global_generators import load_generators, save_generators, seed_generators
from srlhpc.ranks.guarded_signals import restore as restore_signals
from srlhpc.ranks.inputs import read_plan, read_restored
from srlhpc.ranks.serial_pause import SerialPause
from srlhpc.ranks.serving import build_evaluator, build_policy_server
from srlhpc.ranks.trainers import build_trainer
from srlhpc.roles.acting.actor import Actor
from srlhpc.roles.coordinating.coordinator import Coordinator
from srlhpc.roles.role import INFERENCE, Role, run_roles
from srlhpc.roles.serving.policy_server import PolicyServer
from srlhpc.roles.training.trainer import Trainer
from srlhpc.runs.paths import AttemptPaths, RunPaths

_R = TypeVar("_R", bound=Role)

GENERATORS = "generators"
"""Name of the process's own generators beside the roles in a checkpoint."""

log = logging.getLogger(__name__)


def run_serial(paths: RunPaths, attempt: AttemptPaths) -> None:
    """Trains in this process until the run ends; the outcome is in `attempt.outcome`."""
    plan = read_plan(paths, attempt, serial=True)
    restored = read_restored(paths, attempt)
    rank_of = {role.address: 0 for role in plan.roles}
    transport = RankTransport(0, rank_of, InProcessTransport(), None)
    context = RankContext(plan, plan.ranks[0], paths, attempt, transport, restored=restored)
    seed, updates = plan.spec.seed, int(restored["meta"]["updates"]) if restored is not None else 0
    seed_generators(seed_of(seed, "building", 0, updates))
    trainers = [build_trainer(context, role) for role in plan.named("trainer")]
    servers = [build_policy_server(context, role) for role in plan.named("policy_server")]
    with ExitStack() as environments:
        evaluators = _built(context, plan.named("evaluator"), build_evaluator, environments)
        actors = _built(context, plan.named("actor"), build_actor, environments)
        exact = len(plan.trained_policies) == 1 and actors[0].can_save
        if not exact:
            log.warning("%s", _why_not_exact(plan))
        arrangement = _arrangement(plan)
        seed_generators(seed_of(seed, "playing", 0, updates))
        _begin(actors, servers, trainers, restored, arrangement, exact)
        coordinator = build_coordinator(
            context,
            roles_state=lambda: {"arrangement": arrangement, **_roles_state(actors, servers, trainers, exact)},
        )
        roles: list[Role] = [*actors, *servers, *trainers, *evaluators]
        reporter = build_reporter(context, roles)
        pause = SerialPause(roles, attempt)
        run_roles([reporter, *roles, coordinator], INFERENCE, keep_going=lambda: _goes_on(coordinator), sleep=pause)
        environments.pop_all()
    for role in (*roles, reporter, coordinator):
        role.close()


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


def _goes_on(coordinator: Coordinator) -> bool:
    # Native code of an environment may have put its own handlers in their place.
    restore_signals()
    return not coordinator.is_done


def _arrangement(plan: Plan) -> str:
    """Equal where the states of all roles fit: environment, roles, groups and layouts."""
    layouts = [layout.digest for seat in plan.seats for layout in _layouts(plan, seat.policy)]
    environment = plan.spec.environment.model_dump(mode="json")
    parts = [environment, [role.label for role in plan.roles], len(plan.groups), layouts]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _layouts(plan: Plan, policy: str) -> Sequence[Layout]:
    return block_layout(plan, policy), request_layout(plan, policy)


def _begin(
    actors: Sequence[Actor],
    servers: Sequence[PolicyServer],
    trainers: Sequence[Trainer],
    restored: Mapping[str, Any] | None,
    arrangement: str,
    exact: bool,
) -> None:
    states: Mapping[str, Any] = (restored or {}).get("roles", {})
    if states.get("arrangement") != arrangement:
        if restored is not None:
            log.warning("the checkpoint's environments do not fit this run: it starts new episodes")
        states = {}
    roles: list[Role] = [*servers, *trainers, *actors]
    for role in roles:
        if role.label in states:
            role.load_state(states[role.label])
    if GENERATORS in states:
        load_generators(states[GENERATORS])
    updates = int(restored["meta"]["updates"]) if restored is not None else 0
    for actor in actors:
        if not (exact and actor.label in states):
            actor.start(updates)


def _roles_state(
    actors: Sequence[Actor], servers: Sequence[PolicyServer], trainers: Sequence[Trainer], exact: bool
) -> dict[str, Any]:
    state: dict[str, Any] = {role.label: role.save_state() for role in servers}
    if not all(actor.is_between_fragments for actor in actors):
        log.warning("this checkpoint falls within a batch: going on from it starts new episodes")
        return state
    state |= {role.label: role.save_state() for role in (*trainers, *actors)}
    state[GENERATORS] = save_generators()
    if not exact:
        for actor in actors:
            actor.start(trainers[0].version)
    return state


def _why_not_exact(plan: Plan) -> str:
    if len(plan.trained_policies) > 1:
        return "several policies are trained: every checkpoint starts new episodes"
    return (
        f"environment {plan.spec.environment.factory} offers no save_state: every checkpoint starts new episodes, "
        "in this run as in one that goes on from it, so that resuming stays exact"
    )
