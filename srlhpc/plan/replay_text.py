"""What a plan says of a policy's replay: records, bytes, memory and pace. Pure."""

from __future__ import annotations

from srlhpc.errors import counted
from srlhpc.plan.layouts import fragment, shard_windows, window_shape, windows_layout
from srlhpc.plan.plan import Plan
from srlhpc.plan.replay_sizes import (
    disk_bytes,
    draw_of,
    is_in_checkpoints,
    kept_records,
    replay_spec,
    samples_per_insert,
    sent_bytes,
    shard_blocks,
    store_bytes,
    tolerance,
    updates_for,
)


def replay_lines(plan: Plan, policy: str) -> list[str]:
    """What is kept, what it takes, and how often it is learnt from."""
    spec, replays = replay_spec(plan, policy), plan.replays(policy)
    blocks, records, each = shard_blocks(plan, policy), kept_records(plan, policy), len(replays)
    shape, windows = window_shape(plan, policy), windows_layout(plan, policy).size_bytes
    beside = "beside its trainer" if replays[0].rank == plan.trainers(policy)[0].rank else "on a rank of its own"
    beside = beside if each == 1 else f", each {beside}"
    memory = store_bytes(plan, policy)
    least, most = (choose(tolerance(plan, replay) for replay in replays) for choose in (min, max))
    return [
        f"replay: {counted(each, 'shard')}{'' if each > 1 else ' '}{beside}, {records:,} records "
        f"({counted(blocks, 'block')} a shard), {each * memory / records:,.1f} bytes of memory a record with what "
        f"is drawn from, {memory / 1e6:,.1f} MB a shard, and {sent_bytes(plan, policy) / 1e6:,.2f} MB for windows "
        "under way",
        f"  draws: {draw_of(plan, policy).kind}, windows of {counted(shape.records, 'record')} "
        f"(burn-in {shape.burn_in_steps}, trained {shape.fragment_steps}, behind {shape.after}), which begin "
        f"{'at every record' if shape.stride == 1 else f'every {shape.stride} records'} and reach into "
        f"{counted(_reached(plan, policy), 'block')}; "
        f"{shard_windows(plan, policy)} from each shard for a batch ({windows / 1e6:.2f} MB)"
        + (f", of at most {counted(spec.max_age, 'update')} ago" if spec.max_age is not None else ""),
        f"  pace: {samples_per_insert(plan, policy):g} records trained for each that came in, which is "
        f"{_updates(updates_for(plan, policy, 1))}; from {spec.start_steps:,} steps on, each shard within "
        f"{_between(least, most)} trained records",
        f"  checkpoints: {_checkpoints(plan, policy)}",
    ]


def _checkpoints(plan: Plan, policy: str) -> str:
    if not is_in_checkpoints(plan, policy):
        return "hold nothing of it; a resumed run fills it again (replay.checkpoint)"
    return (
        f"hold it in files of their own, {disk_bytes(plan, policy) / 1e6:,.1f} MB of records on the disk for the newest"
    )


def _reached(plan: Plan, policy: str) -> int:
    """Blocks of one group that a window may have records of."""
    return 1 + int(window_shape(plan, policy).spans(fragment(plan, policy).records)[-1])


def _updates(rate: float) -> str:
    """`0.25 updates for each, one every 4`."""
    said = f"{rate:.3g} {'update' if rate == 1 else 'updates'} for each"
    return f"{said}, one every {1 / rate:,.3g}" if rate < 1 else said


def _between(least: float, most: float) -> str:
    return f"{least:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"
