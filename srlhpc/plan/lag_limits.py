"""How old data becomes: a plan's limits, what `max_policy_lag: auto` stands for, what slots hold without one. Pure."""

from __future__ import annotations

from srlhpc.comm.acquisition import must_not_wait
from srlhpc.plan.layouts import fragment
from srlhpc.plan.plan import Plan
from srlhpc.plan.sizes import block_fragments, fragments_in_play, outbox_slots, pool_slots


def needs_grants(plan: Plan, policy: str) -> bool:
    """Whether fragments of the policy start only when granted: where the policy lag or the rate of replay is
    limited."""
    if plan.replays(policy):
        return True
    return bool(plan.sinks(policy)) and max_policy_lag(plan, policy) is not None


def max_policy_lag(plan: Plan, policy: str) -> int | None:
    """The limit in updates; None for none, as with replay and files. In a serial run it is only what comes from using a
    batch again."""
    if plan.replays(policy) or not plan.sinks(policy):
        return None
    return plan.spec.policies[policy].batch.uses - 1 if plan.serial else oldest_trained(plan, policy)


def oldest_trained(plan: Plan, policy: str) -> int | None:
    """The lag above which a fragment is dropped; None for none.

    A serial run's tighter limit is only on starts: what starts beyond it is trained all the same.
    """
    if plan.replays(policy) or not plan.sinks(policy):
        return None
    lag = plan.spec.policies[policy].max_policy_lag
    if lag != "auto":
        return lag
    return None if plan.serial else auto_policy_lag(plan, policy)


def auto_policy_lag(plan: Plan, policy: str) -> int | None:
    """What `max_policy_lag: auto` stands for.

    No limit with a queue, whose batches are meant to become old, and where groups must not wait for the policy's
    fragments, which then would be dropped.
    """
    batch = plan.spec.policies[policy].batch
    lengths = {name: fragment(plan, name).steps for name in plan.fed_policies}
    if batch.queue is not None or policy in must_not_wait(lengths, plan.sharded_policies):
        return None
    return lag_of_busy_actors(fragments_in_play(plan, policy), batch.fragments, batch.uses)


def lag_without_limit(plan: Plan, policy: str) -> int:
    """The lag that only slots bound, where the trainer is slower than its actors."""
    batch, sink = plan.spec.policies[policy].batch, plan.sinks(policy)[0]
    feeding = dict.fromkeys(feeder.actor for feeder in plan.feeders(sink))
    slots = pool_slots(plan, policy) + sum(outbox_slots(plan, actor, sink) for actor in feeding)
    return lag_of_slots(block_fragments(plan, policy), slots, batch.fragments, batch.uses)


def lag_of_busy_actors(in_play: int, batch: int, uses: int) -> int:
    """The least limit at which all actors fill fragments while a batch is trained, in updates.

    Why: during the first use of a batch, `(limit + 1) // uses - 1` further batches may be open (`rollout_slots`, with
    all uses left), and k batches hold what is in play.

    Args:
        in_play: fragments that one trainer's actors fill at the same time.
        batch: fragments of one of its batches.
        uses: updates made of each batch.
    """
    batches = -(-in_play // batch)
    return uses * (batches + 1) - 1


def lag_of_slots(block: int, slots: int, batch: int, uses: int) -> int:
    """The lag where the trainer is slower than its actors and only slots bound it, in updates.

    A fragment that starts waits for the batch that is trained, the one that is gathered, and all blocks before its own.
    It is one more where the newest parameters are still on their way when it starts.

    Args:
        block: fragments of one block.
        slots: blocks under way to one trainer, in its pool and at its actors, those being filled included.
        batch: fragments of one of its batches.
        uses: updates made of each batch.
    """
    batches = 2 + (slots - 1) * block // batch
    return uses * (batches + 1) - 1
