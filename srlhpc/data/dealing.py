"""Which blocks of some stores, as they were saved, go into a new one: those of its groups, the newest of them.

Letters: K stores that were saved, n blocks that are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.segments import Run

_Indices = NDArray[np.int64]
CAME_IN = ("inserted_records", "inserted_valid", "inserted_steps")
"""Names of a store's counts of what came in, blocks aside, which it counts for itself."""


@dataclass(frozen=True)
class Deal:
    """The blocks of a new store, oldest first: block i goes into slot i."""

    states: Sequence[Mapping[str, Any]]
    """K states of stores (`BlockStore.save_state`)."""
    shard: _Indices
    """`[n]`: from which of them."""
    number: _Indices
    """`[n]`: the number that the block had there."""
    group: _Indices
    """`[n]`."""
    sequence: _Indices
    """`[n]`."""
    counts: Mapping[str, int]
    """What came in up to now: an equal share of all stores together."""

    @property
    def blocks(self) -> int:
        """n."""
        return len(self.shard)

    def slots_of(self, shard: int, run: Run) -> tuple[_Indices, _Indices]:
        """Slots that blocks of a store's run go into, and their places in the run."""
        slots = np.flatnonzero(
            (self.shard == shard) & (self.number >= run.first) & (self.number < run.first + len(run.group))
        )
        return slots, self.number[slots] - run.first

    def moved(self, shard: int) -> tuple[_Indices, _Indices]:
        """Slots that blocks of a store go into, and the slots that they had there."""
        slots = np.flatnonzero(self.shard == shard)
        # As long as a store is not full, the number of a block is its slot.
        return slots, self.number[slots] % len(self.states[shard]["generations"])


def deal(states: Sequence[Mapping[str, Any]], keeps: Callable[[int], bool], *, slots: int, shards: int) -> Deal:
    """Deals the blocks of all stores anew.

    Args:
        states: of the stores.
        keeps: whether the blocks of a group go into the new one.
        slots: blocks that it has room for.
        shards: stores that blocks are dealt to, this one included.
    """
    parts = [_blocks(place, state, keeps) for place, state in enumerate(states)]
    age, shard, number, group, sequence = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Sorting that is stable keeps blocks of a group, which are all of one store, in their order.
    order = np.argsort(-age, kind="stable")[-slots:]
    counts = {name: sum(int(state[name]) for state in states) // shards for name in CAME_IN}
    return Deal(states, shard[order], number[order], group[order], sequence[order], counts)


def _blocks(shard: int, state: Mapping[str, Any], keeps: Callable[[int], bool]) -> tuple[_Indices, ...]:
    """Age in blocks, store, number, group and sequence of the blocks of a store that are kept."""
    inserted, slots = int(state["inserted_blocks"]), len(state["generations"])
    number = np.arange(max(0, inserted - slots), inserted)
    group, sequence = (state["links"][name][number % slots] for name in ("group", "sequence"))
    kept = np.fromiter((keeps(int(its_group)) for its_group in group), bool, len(group))
    number, group, sequence = number[kept], group[kept], sequence[kept]
    return inserted - number, np.full(number.shape, shard), number, group, sequence
