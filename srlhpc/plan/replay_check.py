"""Whether the replay of a policy can work: ranks, batches, windows, pace. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from srlhpc.errors import UserError, counted
from srlhpc.plan.layouts import environment_columns, fragment, window_shape
from srlhpc.plan.plan import Plan
from srlhpc.plan.replay_sizes import (
    block_records,
    draw_of,
    drawn_records,
    kept_records,
    least_tolerance,
    replay_spec,
    samples_per_insert,
    shard_blocks,
    updates_of_a_block,
    window_blocks,
)
from srlhpc.specs.replay import PrioritizedDraw


def check_replay(plan: Plan, policy: str) -> None:
    """Refuses replay that cannot work.

    Args:
        plan: of the run.
        policy: a trained policy with replay.

    Raises:
        UserError: with the remedy.
    """
    _check_ranks(plan, policy)
    _check_rule(plan, policy)
    _check_windows(plan, policy)
    _check_pace(plan, policy)
    _check_end(plan, policy)


def replay_notes(plan: Plan) -> Iterator[str]:
    """Which groups wait for others, since all replay ranks are drawn from equally."""
    for policy in plan.sharded_policies:
        fed = [len(plan.feeders(replay)) for replay in plan.replays(policy)]
        if len(set(fed)) > 1:
            yield (
                f"policies.{policy}: its {len(fed)} replay ranks are fed by {', '.join(map(str, fed))} groups and "
                f"drawn from equally, so some groups wait for others; use a multiple of {len(fed)} groups "
                "(actors.ranks x ring)"
            )


def _check_ranks(plan: Plan, policy: str) -> None:
    ranks, trainers, groups = len(plan.replays(policy)), len(plan.trainers(policy)), len(plan.groups)
    if ranks % trainers:
        raise UserError(
            f"policies.{policy}.replay.ranks: is {ranks}; each of {counted(trainers, 'trainer')} draws from as many "
            f"replay ranks as the others: use a multiple of {trainers}, or 0 for one beside each trainer"
        )
    fragments = plan.spec.policies[policy].batch.fragments
    if fragments % (ranks // trainers):
        raise UserError(
            f"policies.{policy}.batch.fragments: is {fragments}; a trainer draws equal parts of its batch from "
            f"{counted(ranks // trainers, 'replay rank')}: use a multiple of {ranks // trainers}, or change "
            "replay.ranks"
        )
    if groups < ranks:
        raise UserError(
            f"actors: {counted(groups, 'group')} (ranks x ring) cannot feed {ranks} replay ranks of policy {policy}; "
            "raise actors.ranks or actors.ring, or lower replay.ranks"
        )


def _check_rule(plan: Plan, policy: str) -> None:
    spec = plan.spec.policies[policy]
    needs = spec.algorithm.needs(plan.kind_of(policy))
    if isinstance(draw_of(plan, policy), PrioritizedDraw) and not needs.gives_feedback:
        raise UserError(
            f"policies.{policy}.replay.draw: is prioritized, but algorithm {spec.algorithm.kind} gives no priorities; "
            "set it to {kind: uniform}, or choose an algorithm that gives some"
        )
    if spec.normalize.observations:
        raise UserError(
            f"policies.{policy}.normalize.observations: is true beside replay; its statistics would count every record "
            "as often as it is drawn: set it to false (scale observations in the environment)"
        )


def _check_windows(plan: Plan, policy: str) -> None:
    groups = max(len(plan.feeders(replay)) for replay in plan.replays(policy))
    blocks, wanted = shard_blocks(plan, policy), window_blocks(plan, policy)
    if blocks < groups * wanted:
        records, ranks = block_records(plan, policy), len(plan.replays(policy))
        shape = window_shape(plan, policy)
        raise UserError(
            f"policies.{policy}.replay.capacity: is {replay_spec(plan, policy).capacity}, of which a replay rank keeps "
            f"{counted(blocks, 'block')} of {records} records, but a window of {shape.records} records "
            f"({shape.burn_in_steps} of burn-in, {shape.fragment_steps} trained, {shape.after} behind) "
            f"needs {counted(wanted, 'block')} of {fragment(plan, policy).records} steps from each of "
            f"{counted(groups, 'group')}: raise it to {groups * wanted * records * ranks} at least, or shorten the "
            "window"
        )


def _check_pace(plan: Plan, policy: str) -> None:
    spec, least = replay_spec(plan, policy), least_tolerance(plan, policy)
    if spec.tolerance is not None and spec.tolerance < least:
        raise UserError(
            f"policies.{policy}.replay.tolerance: is {spec.tolerance:g}; below {least:g} trainers and actors could "
            f"wait for each other for ever (half of {drawn_records(plan, policy)} records that a shard draws for a "
            f"batch + samples_per_insert {samples_per_insert(plan, policy):g} x {block_records(plan, policy)} records "
            f"of a block): raise it to {least:g} at least, or leave it out"
        )
    filling = math.ceil(updates_of_a_block(plan, policy))
    if spec.max_age is not None and spec.max_age < filling:
        raise UserError(
            f"policies.{policy}.replay.max_age: is {spec.max_age}, but blocks take {counted(filling, 'update')} to be "
            f"filled ({counted(len(plan.groups), 'group')}, {block_records(plan, policy)} records of a block), and are "
            f"too old when they come: raise it to {filling} at least, or lower replay.block_steps"
        )
    kept = kept_records(plan, policy)
    wanted = spec.start_steps * environment_columns(plan, policy)
    if wanted > kept:
        raise UserError(
            f"policies.{policy}.replay.start_steps: is {spec.start_steps}, which are {wanted:,} records, but only "
            f"{kept:,} are kept (replay.capacity {spec.capacity}, in whole blocks): lower it, or raise replay.capacity"
        )


def _check_end(plan: Plan, policy: str) -> None:
    """Whether something is learnt before the run ends."""
    spec, steps, columns = replay_spec(plan, policy), plan.spec.stop.steps, environment_columns(plan, policy)
    if steps is None:
        return
    update = drawn_records(plan, policy) * len(plan.replays(policy))
    needed = update / (samples_per_insert(plan, policy) * columns)
    if needed > steps:
        raise UserError(
            f"policies.{policy}.replay.samples_per_insert: is {samples_per_insert(plan, policy):g}, so an update, of "
            f"{update:,} records, comes after every {needed:,.0f} steps, but the run ends after stop.steps {steps}: "
            "raise it, or stop.steps, or lower batch.fragments"
        )
    if spec.start_steps >= steps:
        raise UserError(
            f"policies.{policy}.replay.start_steps: is {spec.start_steps}, but the run ends after stop.steps {steps}, "
            "before anything is learnt: lower it, or raise stop.steps"
        )
