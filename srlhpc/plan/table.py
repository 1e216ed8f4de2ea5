"""A plan for people."""

from __future__ import annotations

from srlhpc.errors import counted
from srlhpc.plan.lag_advice import lag_plan
from srlhpc.plan.layouts import block_layout, fragment, request_layout
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.plan.replay_text import replay_lines
from srlhpc.plan.sizes import batch_blocks, block_fragments, memory_bytes, pool_slots


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
        block, request = block_layout(plan, seat.policy).size_bytes, request_layout(plan, seat.policy).size_bytes
        lines.append(
            f"policy {seat.policy}: plays {len(seat.agents)} of kind {seat.kind} (trains {len(seat.trained)}); "
            f"block {block / 1e6:.2f} MB = {counted(block_fragments(plan, seat.policy), 'fragment')} x "
            f"{fragment(plan, seat.policy).records} records; request {request / 1e3:.1f} kB"
        )
        if plan.replays(seat.policy):
            lines += [f"  {line}" for line in replay_lines(plan, seat.policy)]
        elif plan.trainers(seat.policy):
            blocks, slots = batch_blocks(plan, seat.policy), pool_slots(plan, seat.policy)
            lines.append(f"  batch: {counted(blocks, 'block')} a trainer; pool of {counted(slots, 'slot')}")
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
