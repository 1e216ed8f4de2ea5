"""Makes replay ranks from the plan. Free of torch."""

from __future__ import annotations

from functools import partial

import numpy as np

from srlhpc.data.block_store import BlockStore, FirstPriority
from srlhpc.data.segment_log import SegmentLog
from srlhpc.import_path import load_module
from srlhpc.plan.layouts import block_layout, window_shape
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.plan.replay_sizes import (
    block_records,
    draw_of,
    drawn_records,
    file_blocks,
    is_in_checkpoints,
    replay_spec,
    samples_per_insert,
    shard_blocks,
    tolerance,
)
from srlhpc.plan.seeds import seed_of
from srlhpc.ranks.arrangement import goes_on_exactly
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.replay_restoring import restore
from srlhpc.roles.checkpoint_parts import PartSender
from srlhpc.roles.grant_desk import GrantDesk
from srlhpc.roles.replaying.rate import Rate
from srlhpc.roles.replaying.replay import Replay
from srlhpc.roles.replaying.shard_part import ShardPart
from srlhpc.runs.replay_checkpoint import identity
from srlhpc.specs.replay import PrioritizedDraw

_PART_SLOTS = 2
"""Chunks of a part that are on their way at once; the rest of it is copied, and waits."""


def build_replay(context: RankContext, role: RolePlan) -> Replay:
    """One shard, with what it had if the run goes on; in a serial run `load_shard` and `load_state` may come next."""
    plan, name, wiring = context.plan, role.policy or "", context.wiring
    spec, shards = replay_spec(plan, name), len(plan.replays(name))
    seed = seed_of(plan.spec.seed, "replay", *map(ord, name), role.index, context.restart)
    store = BlockStore(
        block_layout(plan, name),
        window_shape(plan, name),
        slots=shard_blocks(plan, name),
        draw=draw_of(plan, name),
        generator=np.random.default_rng(seed),
        first_priority=_first_priority(plan, name),
        max_age=spec.max_age,
    )
    rate = Rate(
        samples_per_insert=samples_per_insert(plan, name),
        tolerance=tolerance(plan, role),
        start_steps=spec.start_steps / shards,
    )
    log = _segment_log(context, role, store) if is_in_checkpoints(plan, name) else None
    restored, refills, part = context.restored, False, None
    if restored is not None and not (plan.serial and goes_on_exactly(plan, restored)):
        refills = not restore(context, role, store, log)
    if log is not None:
        sender = None if plan.serial else PartSender(wiring.part_outbox(role, _PART_SLOTS))
        part = ShardPart(store, log, identity(plan, role), sender)
    windows, draws = wiring.replay_ends(role)
    return Replay(
        role.label,
        store,
        rate,
        blocks=wiring.blocks(role),
        desk=GrantDesk(*wiring.grant_ends(role), worth=block_records(plan, name)),
        windows=windows,
        draws=draws,
        part=part,
        feeders={feeder.actor.address for feeder in plan.feeders(role)},
        block_records=block_records(plan, name),
        draw_records=drawn_records(plan, name),
        refills=refills,
    )


def _segment_log(context: RankContext, role: RolePlan, store: BlockStore) -> SegmentLog:
    return SegmentLog(
        context.paths.replay,
        role.label,
        slots=store.slots,
        file_blocks=file_blocks(context.plan, role.policy or ""),
        runs=store.runs,
        in_thread=not context.plan.serial,
    )


def _first_priority(plan: Plan, policy: str) -> FirstPriority | None:
    """What the policy's rule makes of windows that were never drawn; None: they get the greatest priority so far."""
    spec = plan.spec.policies[policy]
    kind = plan.kind_of(policy)
    draw, function = draw_of(plan, policy), spec.algorithm.needs(kind).first_priorities
    # Such a function takes the next record for the successor, which may be another agent's turn.
    if not isinstance(draw, PrioritizedDraw) or draw.initial == "greatest" or function is None or kind.takes_turns:
        return None
    module, _, name = function.partition(":")
    return partial(getattr(load_module(module, "srlhpc.algorithms", (name,)), name), spec.algorithm)
