"""Fills a shard of replay from a checkpoint where the run does not go on bit for bit. Free of torch."""

from __future__ import annotations

import logging

from srlhpc.data.block_store import BlockStore
from srlhpc.data.dealing import deal
from srlhpc.data.segment_folder import runs_of, segments_of
from srlhpc.data.segment_log import SegmentLog
from srlhpc.errors import UserError, counted
from srlhpc.plan.plan import RolePlan
from srlhpc.plan.replay_sizes import replay_spec
from srlhpc.ranks.context import RankContext
from srlhpc.runs.replay_checkpoint import saved_shards, why_empty

log = logging.getLogger(__name__)


def restore(context: RankContext, role: RolePlan, store: BlockStore, segment_log: SegmentLog | None) -> bool:
    """Fills an empty store with what the context's checkpoint holds for it; else says why it starts empty.

    Groups begin new blocks, so those that are here end with a cut. A shard that is as it was takes its files over;
    from others the blocks of its groups are dealt to it, the newest of them, and written to files of its own.

    Returns:
        Whether it is filled.

    Raises:
        FileSystemLostError: the file system fails for too long.
    """
    plan, policy, folder = context.plan, role.policy or "", context.paths.replay
    tree = context.restored or {}
    reason = why_empty(tree, plan, policy, folder)
    if reason is None:
        try:
            _fill(context, role, store, segment_log)
        except (UserError, ValueError) as error:
            reason = str(error)
    if reason is None:
        log.info("%s goes on with %s", role.label, counted(store.blocks, "block"))
        return True
    steps = replay_spec(plan, policy).start_steps / len(plan.replays(policy))
    log.warning("%s starts empty: %s; it is drawn from when %s steps came in", role.label, reason, f"{steps:,.0f}")
    return False


def _fill(context: RankContext, role: RolePlan, store: BlockStore, segment_log: SegmentLog | None) -> None:
    """Fills the store, or leaves it empty.

    Raises:
        UserError: a file is missing, cut off or damaged.
        ValueError: blocks are others than the checkpoint says.
    """
    plan, policy, folder = context.plan, role.policy or "", context.paths.replay
    parts, shards = saved_shards(context.restored or {}, policy), len(plan.replays(policy))
    if len(parts) == shards and store.fits(parts[role.index]["store"]):
        mine = parts[role.index]
        store.load_state(mine["store"], runs_of(mine, folder))
        store.end_sequences()
        if segment_log is not None:
            segment_log.go_on(segments_of(mine), store.inserted_blocks)
        return
    groups = {plan.seat_number(feeder.group, feeder.seat) for feeder in plan.feeders(role)}
    dealt = deal([part["store"] for part in parts], groups.__contains__, slots=store.slots, shards=shards)
    needed = set(dealt.shard.tolist())
    store.take_over(dealt, [runs_of(part, folder) if place in needed else () for place, part in enumerate(parts)])
