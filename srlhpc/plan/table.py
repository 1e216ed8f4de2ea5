"""A plan for people, and the memory it takes."""

from __future__ import annotations

from collections.abc import Mapping

from srlhpc.plan.lag_text import lag_plan
from srlhpc.plan.plan import SENDING_SLOTS, Plan, RankPlan


def batches_bytes(made: Plan, policy: str) -> int:
    """Bytes of the batches that one trainer keeps."""
    return made.block_layout(policy).size_bytes * made.spec.policies[policy].batch.buffers * made.batch_blocks(policy)


def memory_bytes(made: Plan) -> Mapping[str, int]:
    """Bytes of slots and batch buffers by role label (without libraries, networks and simulators)."""
    result: dict[str, int] = {}
    for trainer in made.named("trainer"):
        policy = trainer.policy or ""
        block = made.block_layout(policy).size_bytes
        result[trainer.label] = block * made.pool_slots(policy) + batches_bytes(made, policy)
    for actor in made.named("actor"):
        result[actor.label] = sum(
            made.block_layout(trainer.policy or "").size_bytes * made.outbox_slots(actor, trainer)
            for trainer in made.named("trainer")
            if made.outbox_slots(actor, trainer) > SENDING_SLOTS
        )
    return result


def plan_table(made: Plan) -> str:
    """The plan for people: ranks, groups, blocks, memory, descriptors."""
    memory = memory_bytes(made)
    lines = [f"{'rank':>4}  {'role':24} {'buffers MB':>10}  feeds"]
    for rank in made.ranks:
        size = sum(memory.get(role.label, 0) for role in rank.roles) / 1e6
        names = " + ".join(role.label for role in rank.roles)
        lines.append(f"{rank.rank:>4}  {names:24} {size:>10.1f}  {_feeds(made, rank)}".rstrip())
    lines.append("")
    for seat in made.seats:
        block = made.block_layout(seat.policy).size_bytes
        lines.append(
            f"policy {seat.policy}: plays {len(seat.agents)} of kind {seat.kind} (trains {len(seat.trained)}); "
            f"block {block / 1e6:.2f} MB = {made.block_fragments(seat.policy)} fragments x "
            f"{made.records(seat.policy)} records; request {made.request_layout(seat.policy).size_bytes / 1e3:.1f} kB"
        )
        if made.trainers(seat.policy):
            lines.append(
                f"  batch: {made.batch_blocks(seat.policy)} blocks a trainer; pool of "
                f"{made.pool_slots(seat.policy)} slots"
            )
            lines.append(f"  {lag_plan(made, seat.policy)}")
    lines.append(f"descriptors: about {30 + len(made.ranks)} per rank")
    lines.extend(f"note: {note}" for note in made.notes)
    return "\n".join(lines)


def _feeds(made: Plan, rank: RankPlan) -> str:
    actors = [role for role in rank.roles if role.name == "actor"]
    groups = [made.group_number(actor, place) for actor in actors for place in range(made.spec.actors.ring)]
    if not groups:
        return ""
    trainers = {made.trainer_of(g, p).label for g in groups for p in made.trained_policies}
    servers = {made.server_of(g, s.policy).label for g in groups for s in made.seats}
    return f"{', '.join(sorted(trainers))}; served by {', '.join(sorted(servers))}"
