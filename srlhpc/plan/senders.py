"""Who sends to whom, by ranks."""

from __future__ import annotations

from srlhpc.plan.lag_limits import needs_grants
from srlhpc.plan.plan import Plan


def senders_to(plan: Plan, rank: int) -> set[int]:
    """Ranks that send anything to a rank that is not essential."""
    found = {plan.coordinator.rank}
    for role in plan.ranks[rank].roles:
        found |= {plan.trainers(name)[0].rank for name in plan.trained_policies if role in plan.subscribers(name)}
        if role.name == "actor":
            for place in range(plan.spec.actors.ring):
                found |= _senders_to_group(plan, plan.group_number(role, place))
    return found - {rank}


def _senders_to_group(plan: Plan, group: int) -> set[int]:
    servers = {plan.server_of(group, seat.policy).rank for seat in plan.seats}
    feeding = {seat.policy for seat in plan.seats if needs_grants(plan, seat.policy) and plan.is_trained(group, seat)}
    return servers | {plan.sink_of(group, policy).rank for policy in feeding}
