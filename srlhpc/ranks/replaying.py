"""Makes replay ranks from the plan. Free of torch."""

from __future__ import annotations

import logging
from functools import partial

import numpy as np

from srlhpc.data.block_store import BlockStore, FirstPriority
from srlhpc.import_path import load_module
from srlhpc.plan.layouts import block_layout, window_shape
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.plan.replay_sizes import block_records, drawn_records, replay_spec, shard_blocks, tolerance
from srlhpc.plan.seeds import seed_of
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.inputs import checkpoint_path
from srlhpc.roles.grant_desk import GrantDesk
from srlhpc.roles.replaying.rate import Rate
from srlhpc.roles.replaying.replay import Replay
from srlhpc.specs.replay import PrioritizedDraw

log = logging.getLogger(__name__)


def build_replay(context: RankContext, role: RolePlan) -> Replay:
    """One shard; in a serial run `load_state` may come next."""
    plan, name, wiring = context.plan, role.policy or "", context.wiring
    spec, shards = replay_spec(plan, name), len(plan.replays(name))
    seed = seed_of(plan.spec.seed, "replay", *map(ord, name), role.index, context.restart)
    store = BlockStore(
        block_layout(plan, name),
        window_shape(plan, name),
        slots=shard_blocks(plan, name),
        draw=spec.draw,
        generator=np.random.default_rng(seed),
        first_priority=_first_priority(plan, name),
    )
    rate = Rate(
        samples_per_insert=spec.samples_per_insert,
        tolerance=tolerance(plan, role),
        start_steps=spec.start_steps / shards,
    )
    if not plan.serial and checkpoint_path(context.paths, context.attempt) is not None:
        log.warning(
            "%s starts empty, since checkpoints hold no replay: training goes on when %s steps have come in",
            role.label,
            f"{rate.start_steps:,.0f}",
        )
    windows, draws = wiring.replay_ends(role)
    return Replay(
        role.label,
        store,
        rate,
        blocks=wiring.blocks(role),
        desk=GrantDesk(*wiring.grant_ends(role), worth=block_records(plan, name)),
        windows=windows,
        draws=draws,
        feeders={actor.address for actor, _ in plan.groups_fed(role)},
        block_records=block_records(plan, name),
        draw_records=drawn_records(plan, name),
    )


def _first_priority(plan: Plan, policy: str) -> FirstPriority | None:
    """What the policy's rule makes of windows that were never drawn; None: they get the greatest priority so far."""
    spec = plan.spec.policies[policy]
    draw, function = replay_spec(plan, policy).draw, spec.algorithm.needs(plan.kind_of(policy)).first_priorities
    if not isinstance(draw, PrioritizedDraw) or draw.initial == "greatest" or function is None:
        return None
    module, _, name = function.partition(":")
    return partial(getattr(load_module(module, "srlhpc.algorithms", (name,)), name), spec.algorithm)
