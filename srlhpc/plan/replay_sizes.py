"""How many records and blocks the replay ranks of a policy keep, the bytes they take, and the pace of drawing. Pure.

Only of policies with replay. Letters: K replay ranks of the policy, J trainers, M blocks that one rank keeps.
"""

from __future__ import annotations

from srlhpc.data.blocks import FINAL_STATE
from srlhpc.plan.layouts import block_layout, environment_columns, fragment, shard_windows, window_shape, windows_layout
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.specs.contracts import Needs
from srlhpc.specs.replay import Draw, PrioritizedDraw, ReplaySpec

WINDOWS_AHEAD = 2
"""Batches that may be drawn before the update that they are for."""
WINDOW_SLOTS = 2
"""Messages of windows that a replay rank fills or has under way."""
_FILE_BYTES = 64 << 20
"""Size of a file of blocks: large enough for shared file systems, small enough to be written while training goes on."""
_LEAST_FILES = 8
"""Files of a full store at least, since a whole one stays for the sake of its last block."""
_DRAWN_PLACES = 3
"""Batches that a trainer has room for: one is trained, one is gathered, and one has landed as messages."""


def replay_spec(plan: Plan, policy: str) -> ReplaySpec:
    """The policy's section `replay`."""
    spec = plan.spec.policies[policy].replay
    assert spec is not None
    return spec


def draw_of(plan: Plan, policy: str) -> Draw:
    """How the policy's windows are drawn: as its job says, or else its rule."""
    draw = replay_spec(plan, policy).draw
    return _needs(plan, policy).draw if draw is None else draw


def samples_per_insert(plan: Plan, policy: str) -> float:
    """Trained records that are drawn for each that comes in: as the policy's job says, or else its rule."""
    ratio = replay_spec(plan, policy).samples_per_insert
    return _needs(plan, policy).samples_per_insert if ratio is None else ratio


def _needs(plan: Plan, policy: str) -> Needs:
    return plan.spec.policies[policy].algorithm.needs(plan.kind_of(policy))


def windows_ahead(plan: Plan) -> int:
    """Batches that are drawn before they are needed: none but the next in a serial run, and without prefetch."""
    return 1 if plan.serial or not plan.spec.trainers.prefetch else WINDOWS_AHEAD


def block_records(plan: Plan, policy: str) -> int:
    """Records of one block, of all its columns."""
    return fragment(plan, policy).records * plan.spec.actors.environments * environment_columns(plan, policy)


def shard_blocks(plan: Plan, policy: str) -> int:
    """M: the policy's capacity in equal parts, rounded up to whole blocks."""
    return -(-replay_spec(plan, policy).capacity // (len(plan.replays(policy)) * block_records(plan, policy)))


def kept_records(plan: Plan, policy: str) -> int:
    """Records that all replay ranks of the policy keep: its capacity, rounded up to whole blocks of each."""
    return len(plan.replays(policy)) * shard_blocks(plan, policy) * block_records(plan, policy)


def window_blocks(plan: Plan, policy: str) -> int:
    """Blocks of one group that hold a window."""
    return -(-window_shape(plan, policy).records // fragment(plan, policy).records)


def drawn_records(plan: Plan, policy: str) -> int:
    """Trained records that a replay rank draws for one batch."""
    return shard_windows(plan, policy) * plan.spec.policies[policy].batch.fragment_steps


def updates_for(plan: Plan, policy: str, records: int) -> float:
    """Updates that are made for so many records that come in."""
    return samples_per_insert(plan, policy) * records / (drawn_records(plan, policy) * len(plan.replays(policy)))


def updates_of_a_block(plan: Plan, policy: str) -> float:
    """Updates in the time in which every group fills a block: so old is a block's first record when it comes."""
    feeders = sum(len(plan.feeders(replay)) for replay in plan.replays(policy))
    return updates_for(plan, policy, block_records(plan, policy) * feeders)


def least_tolerance(plan: Plan, policy: str) -> float:
    """The tolerance below which both sides could wait for each other.

    Why: trainers wait while `drawn + n - s x inserted` is above it, groups while `s x (inserted + b) - drawn` is, for
    n records a draw, b a block, s samples per insert. Both together mean that `n + s x b` is above twice the tolerance.
    """
    block = samples_per_insert(plan, policy) * block_records(plan, policy)
    return (drawn_records(plan, policy) + block) / 2


def tolerance(plan: Plan, replay: RolePlan) -> float:
    """Trained records that a replay rank's draws may be ahead of what came in, or behind it."""
    policy = replay.policy or ""
    spec = replay_spec(plan, policy)
    if spec.tolerance is not None:
        return spec.tolerance
    groups = len(plan.feeders(replay))
    block = samples_per_insert(plan, policy) * block_records(plan, policy)
    return block * groups + 2 * drawn_records(plan, policy)


def store_bytes(plan: Plan, policy: str) -> int:
    """Bytes of one replay rank's records, and of the set from which items are drawn."""
    shape = window_shape(plan, policy)
    blocks = shard_blocks(plan, policy)
    items = blocks * -(-fragment(plan, policy).records // shape.stride) * block_records(plan, policy)
    items //= fragment(plan, policy).records
    leaves = 1 << max(1, (items - 1).bit_length())
    tree = 2 * leaves * 8 if isinstance(draw_of(plan, policy), PrioritizedDraw) else 0
    return blocks * stored_bytes(plan, policy) + items + tree


def stored_bytes(plan: Plan, policy: str) -> int:
    """Bytes that are kept of a block; the states at its end are not."""
    return sum(item.size_bytes for item in block_layout(plan, policy).fields if not item.name.startswith(FINAL_STATE))


def is_in_checkpoints(plan: Plan, policy: str) -> bool:
    """Whether checkpoints hold the policy's replay."""
    return bool(plan.replays(policy)) and (plan.serial or replay_spec(plan, policy).checkpoint)


def file_blocks(plan: Plan, policy: str) -> int:
    """Blocks of one file beside checkpoints: a file is removed when the last of them is overwritten."""
    most = max(1, shard_blocks(plan, policy) // _LEAST_FILES)
    return min(most, max(1, _FILE_BYTES // stored_bytes(plan, policy)))


def disk_bytes(plan: Plan, policy: str) -> int:
    """Bytes that the newest checkpoint needs beside its file, for all shards of a policy."""
    blocks = shard_blocks(plan, policy) + file_blocks(plan, policy)
    return len(plan.replays(policy)) * blocks * stored_bytes(plan, policy)


def sent_bytes(plan: Plan, policy: str) -> int:
    """Bytes of the windows that one replay rank fills or has under way."""
    return WINDOW_SLOTS * windows_layout(plan, policy).size_bytes


def drawn_bytes(plan: Plan, policy: str) -> int:
    """Bytes of the windows that one trainer has: its batches, and messages that have landed."""
    shards = len(plan.replays(policy)) // len(plan.trainers(policy))
    return _DRAWN_PLACES * shards * windows_layout(plan, policy).size_bytes
