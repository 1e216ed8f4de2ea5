"""Makes actors from the plan. Free of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from srlhpc.data.blocks import record_fields
from srlhpc.environment import Episode
from srlhpc.import_path import load_module
from srlhpc.plan.layouts import fragment, policy_shapes
from srlhpc.plan.plan import Plan, RolePlan, Seat
from srlhpc.plan.seeds import seed_of
from srlhpc.ranks.context import RankContext
from srlhpc.roles.acting.actor import MANY_EPISODES, Actor, StepError
from srlhpc.roles.acting.closing import close, raised
from srlhpc.roles.acting.group import Group
from srlhpc.roles.acting.matches import GroupMatches
from srlhpc.roles.acting.recorder import SeatRecorder


def build_actor(context: RankContext, role: RolePlan) -> Actor:
    """An actor with its ring; `start` or `load_state` comes next."""
    plan = context.plan
    where = f"environment {plan.spec.environment.factory} on rank {role.rank} ({role.label})"
    groups: list[Group] = []
    try:
        for place in range(plan.spec.actors.ring):
            groups.append(_group(context, role, place))
    except BaseException:
        for group in groups:
            close(group.environment, where)
        raise
    # Serial mode reports once, after each batch: all episodes are reported then.
    many = 1 if plan.serial else MANY_EPISODES
    return Actor(role.label, groups, where=where, episode_summary=group_summary(plan), many_episodes=many)


def _group(context: RankContext, role: RolePlan, place: int) -> Group:
    plan, spec = context.plan, context.plan.spec
    number = plan.group_number(role, place)

    def seed(start: int) -> int:
        return seed_of(spec.seed, "environment", role.index, place, start)

    module = load_module(spec.environment.factory, "envs")
    try:
        environment = module.build(spec.environment, num_environments=spec.actors.environments, seed=seed(0))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise StepError(
            f"environment {spec.environment.factory} cannot be built on rank {role.rank} ({role.label}): "
            f"{raised(error)}"
        ) from error
    recorders: dict[str, SeatRecorder] = {}
    for seat in plan.seats:
        recorders[seat.name] = _recorder(context, role, number, seat, recorders)
    seats = {seat.name: (seat.kind, recorders[seat.name]) for seat in plan.seats}
    first = [seat.name for seat in plan.seats if seat.policy in plan.sharded_policies]
    return Group(number, environment, seats, seed, _matches(context, role, number), first)


def _matches(context: RankContext, role: RolePlan, group: int) -> GroupMatches | None:
    plan = context.plan
    if plan.spec.matches is None:
        return None
    return GroupMatches(
        group,
        context.wiring.match_channels(role, group),
        [plan.agents_of(seat) for seat in plan.seats],
        num_environments=plan.spec.actors.environments,
        lot=plan.spec.matches.lot,
        measures=plan.measures(group),
    )


def _recorder(
    context: RankContext, role: RolePlan, group: int, seat: Seat, others: Mapping[str, SeatRecorder]
) -> SeatRecorder:
    """A seat's recorder; `others` are those of the group that have been made, by seat."""
    plan = context.plan
    together = plan.granted_together(group, seat)
    shapes, own = policy_shapes(plan, seat.policy), fragment(plan, seat.policy)
    return SeatRecorder(
        plan.seat_number(group, seat),
        context.wiring.seat_channels(role, group, seat),
        agents=seat.agents,
        trained=seat.trained,
        kind_agents=len(shapes.kind.agents),
        records=own.records,
        burn_in=own.burn_in,
        chunks=own.chunks,
        fields=record_fields(shapes),
        recurrent=bool(shapes.state),
        granted_with=others[together[0].name] if seat in together[1:] else None,
        granted_blocks=len(together),
    )


def group_summary(plan: Plan) -> Callable[[int, Episode], dict[str, Any] | None]:
    """Turns an episode of a group into what is reported of it, by the group's number.

    In matches what versions get is left out, and an episode of versions alone is not reported: None.
    """

    @cache
    def of_group(group: int) -> Callable[[Episode], dict[str, Any]]:
        learning = plan.learning_seat(group)
        return episode_summary(plan, plan.whole_seats if learning is None else [learning])

    return lambda group, episode: None if plan.measures(group) else of_group(group)(episode)


def episode_summary(plan: Plan, seats: Sequence[Seat] | None = None) -> Callable[[Episode], dict[str, Any]]:
    """Turns an episode into what is reported: the mean return of its trained agents, and by policy.

    Means are over the agents that were in the game. Of an episode without a trained one the return is None, and a
    policy without one is left out. `seats` are those that are reported; None: all.
    """
    seats = plan.whole_seats if seats is None else seats
    agents = {seat.policy: plan.agents_of(seat) for seat in seats}
    trained = [agents[seat.policy][i] for seat in seats for i in seat.trained]

    def mean(episode: Episode, names: list[str]) -> float | None:
        returns = [episode.returns[name] for name in names if name in episode.returns]
        return float(sum(returns) / len(returns)) if returns else None

    def summary(episode: Episode) -> dict[str, Any]:
        return {
            "return": mean(episode, trained),
            "steps": int(episode.steps),
            "policies": {
                policy: value for policy, names in agents.items() if (value := mean(episode, names)) is not None
            },
            "metrics": {name: float(value) for name, value in episode.metrics.items()},
        }

    return summary
