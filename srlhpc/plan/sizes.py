"""How many fragments, blocks and slots a plan has, and the bytes they take. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from srlhpc.data.batch_arrays import batch_arrays
from srlhpc.data.stacks import whole
from srlhpc.environment import ArraySpec
from srlhpc.plan.layouts import block_layout, environment_columns, recorded_layout, windows_layout
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.plan.replay_sizes import drawn_bytes, sent_bytes, store_bytes

SENDING_SLOTS = 1
"""Blocks of one actor that may be under way to one sink, beside those being filled: more only adds policy lag."""
POOL_SLOTS = 2
"""Blocks that land at a sink before they are gathered into a batch: one while another is copied."""


def block_fragments(plan: Plan, policy: str) -> int:
    """Fragments that one block brings."""
    return plan.spec.actors.environments * environment_columns(plan, policy)


def batch_blocks(plan: Plan, policy: str) -> int:
    """Blocks that make one trainer's batch."""
    return plan.spec.policies[policy].batch.fragments // block_fragments(plan, policy)


def fragments_in_play(plan: Plan, policy: str) -> int:
    """Fragments that the actors of one sink fill at the same time; of the sink with most."""
    feeders = max((len(plan.feeders(sink)) for sink in plan.sinks(policy)), default=0)
    return feeders * block_fragments(plan, policy)


def pool_slots(plan: Plan, policy: str) -> int:
    """Slots of a sink's pool. Few: blocks are gathered as they come, and what waits here is policy lag."""
    feeding = {feeder.actor.index for sink in plan.sinks(policy) for feeder in plan.feeders(sink)}
    return max(POOL_SLOTS, len(feeding) // 8)


def outbox_slots(plan: Plan, actor: RolePlan, sink: RolePlan) -> int:
    """Slots of an actor towards a sink: one for each seat that fills one, and those under way."""
    policy = sink.policy or ""
    groups = [plan.group_number(actor, place) for place in range(plan.spec.actors.ring)]
    filling = sum(
        plan.is_trained(group, seat)
        for group in groups
        if plan.sink_of(group, policy) is sink
        for seat in plan.seats_of(policy)
    )
    return filling + SENDING_SLOTS


def trainer_arrays(plan: Plan, policy: str) -> Mapping[str, ArraySpec]:
    """Arrays of one trainer's batch, by name."""
    if plan.replays(policy):
        return batch_arrays(windows_layout(plan, policy), len(plan.replays(policy)) // len(plan.trainers(policy)))
    if not plan.sinks(policy):
        return batch_arrays(recorded_layout(plan, policy), 1)
    return batch_arrays(block_layout(plan, policy), batch_blocks(plan, policy))


def kept_bytes(plan: Plan, policy: str) -> int:
    """Bytes of what the policy's learning rule keeps of its batches, on each trainer."""
    return plan.spec.policies[policy].algorithm.kept_bytes(trainer_arrays(plan, policy))


def batches_bytes(plan: Plan, policy: str) -> int:
    """Bytes of the batches that one trainer has, and of what its rule keeps of them."""
    kept = kept_bytes(plan, policy)
    if plan.replays(policy):
        return kept + drawn_bytes(plan, policy)
    if not plan.sinks(policy):
        return kept + 2 * recorded_layout(plan, policy).size_bytes
    block, buffers = block_layout(plan, policy), plan.spec.policies[policy].batch.buffers
    # Batches hold the frames of stacks once, as blocks do; of the one in use a rule may make whole stacks.
    stacks = sum(whole(field).size_bytes for field in block.fields if field.stack is not None)
    return kept + (block.size_bytes * buffers + stacks) * batch_blocks(plan, policy)


def memory_bytes(plan: Plan) -> Mapping[str, int]:
    """Bytes of slots and batch buffers by role label (without libraries, networks and simulators)."""
    result: dict[str, int] = {}
    for trainer in plan.named("trainer"):
        result[trainer.label] = batches_bytes(plan, trainer.policy or "")
    # Once a policy: there are thousands of actors, and each may send to every sink.
    blocks = {policy: block_layout(plan, policy).size_bytes for policy in plan.fed_policies}
    pools = {policy: blocks[policy] * pool_slots(plan, policy) for policy in plan.fed_policies}
    sinks = [(policy, sink) for policy in plan.fed_policies for sink in plan.sinks(policy)]
    for policy, sink in sinks:
        result[sink.label] = result.get(sink.label, 0) + pools[policy]
    for replay in plan.named("replay"):
        policy = replay.policy or ""
        result[replay.label] += store_bytes(plan, policy) + sent_bytes(plan, policy)
    for actor in plan.named("actor"):
        result[actor.label] = sum(
            blocks[policy] * slots
            for policy, sink in sinks
            if (slots := outbox_slots(plan, actor, sink)) > SENDING_SLOTS
        )
    return result
