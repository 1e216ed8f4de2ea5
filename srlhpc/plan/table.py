"""A plan for people, and the memory it takes."""

from __future__ import annotations

from collections.abc import Mapping

from srlhpc.plan.lag_text import lag_plan
from srlhpc.plan.plan import SENDING_SLOTS, Plan, RankPlan


def batches_bytes(plan: Plan, policy: str) -> int:
    """Bytes of the batches that one trainer keeps."""
    return plan.block_layout(policy).size_bytes * plan.spec.policies[policy].batch.buffers * plan.batch_blocks(policy)


def memory_bytes(plan: Plan) -> Mapping[str, int]:
    """Bytes of slots and batch buffers by role label (without libraries, networks and simulators)."""
    result: dict[str, int] = {}
    for trainer in plan.named("trainer"):
        result[trainer.label] = batches_bytes(plan, trainer.policy or "")
    sinks = [sink for policy in plan.trained_policies for sink in plan.sinks(policy)]
    for sink in sinks:
        pool = plan.block_layout(sink.policy or "").size_bytes * plan.pool_slots(sink.policy or "")
        result[sink.label] = result.get(sink.label, 0) + pool
    for actor in plan.named("actor"):
        result[actor.label] = sum(
            plan.block_layout(sink.policy or "").size_bytes * plan.outbox_slots(actor, sink)
            for sink in sinks
            if plan.outbox_slots(actor, sink) > SENDING_SLOTS
        )
    return result


def plan_table(plan: Plan) -> str:
    """The plan for people: ranks, groups, blocks, memory, descriptors."""
    memory = memory_bytes(plan)
    lines = [f"{'rank':>4}  {'role':24} {'buffers MB':>10}  feeds"]
    for rank in plan.ranks:
        size = sum(memory.get(role.label, 0) for role in rank.roles) / 1e6
        names = " + ".join(role.label for role in rank.roles)
        lines.append(f"{rank.rank:>4}  {names:24} {size:>10.1f}  {_feeds(plan, rank)}".rstrip())
    lines.append("")
    for seat in plan.seats:
        block = plan.block_layout(seat.policy).size_bytes
        lines.append(
            f"policy {seat.policy}: plays {len(seat.agents)} of kind {seat.kind} (trains {len(seat.trained)}); "
            f"block {block / 1e6:.2f} MB = {plan.block_fragments(seat.policy)} fragments x "
            f"{plan.records(seat.policy)} records; request {plan.request_layout(seat.policy).size_bytes / 1e3:.1f} kB"
        )
        if plan.trainers(seat.policy):
            lines.append(
                f"  batch: {plan.batch_blocks(seat.policy)} blocks a trainer; pool of "
                f"{plan.pool_slots(seat.policy)} slots"
            )
            lines.append(f"  {lag_plan(plan, seat.policy)}")
    lines.append(f"descriptors: about {30 + len(plan.ranks)} per rank")
    lines.extend(f"note: {note}" for note in plan.notes)
    return "\n".join(lines)


def _feeds(plan: Plan, rank: RankPlan) -> str:
    actors = [role for role in rank.roles if role.name == "actor"]
    groups = [plan.group_number(actor, place) for actor in actors for place in range(plan.spec.actors.ring)]
    if not groups:
        return ""
    sinks = {plan.sink_of(g, p).label for g in groups for p in plan.trained_policies}
    servers = {plan.server_of(g, s.policy).label for g in groups for s in plan.seats}
    return f"{', '.join(sorted(sinks))}; served by {', '.join(sorted(servers))}"
