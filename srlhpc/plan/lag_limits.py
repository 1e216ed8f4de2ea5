"""How old data becomes: what `max_policy_lag: auto` stands for, and what slots hold without a limit. Pure."""

from __future__ import annotations


def auto_policy_lag(in_play: int, batch: int, uses: int) -> int:
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


def lag_without_limit(block: int, slots: int, batch: int, uses: int) -> int:
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
