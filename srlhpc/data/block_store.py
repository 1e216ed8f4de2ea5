"""The store of a replay rank: the newest blocks, and windows of their records that are drawn again and again.

Blocks stay as they came and are overwritten oldest first, whoever sent them. Windows are cut across blocks when they
are drawn, so overlapping windows, burn-in and the records behind the last trained one cost no memory.

An item is a window that can be drawn. It begins at any `stride`-th record of a block, in any column. It is drawable as
soon as all its records are there, or as many as there will be: a block whose number does not follow that of its group's
last one begins anew, and the block before ends with a cut (data/windows.py). It may cross ends of episodes. One without
a valid trained record is never drawn. It ends with the block of its first record, or when that is too old (`expire`).

Burn-in is whole in every window. So the first `burn_in_steps` records of a group's sequence of blocks warm up memory
and are never trained, as in R2D2 (Kapturowski et al. 2019, section 3), but there this holds for every episode: here the
records of all episodes but the very first are trained from their start, because the burn-in of such a window lies in
the episode before, and memory is reset between them as it was when acting. Padding the very first with records that
never were would train a few records more and hide a wrong state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.block_storage import Block, BlockStorage, Indices, Places
from srlhpc.data.blocks import STATE, BlockHeader
from srlhpc.data.dealing import CAME_IN, Deal
from srlhpc.data.item_draws import Draws
from srlhpc.data.layout import Array, Layout
from srlhpc.data.segments import Run
from srlhpc.data.windows import GENERATION, PROBABILITY, SLOT, WindowShape, of_columns
from srlhpc.errors import counted
from srlhpc.specs.replay import Draw

FirstPriority = Callable[[Mapping[str, Array]], Array]
"""Priorities `[N]` of windows that were never drawn, from their fields from the first trained record on, `[R, N, ...]`
or `[R + 1, N, ...]`. Only fields that are asked for are gathered."""
_BLOCKS_AT_ONCE = 64
"""Blocks whose items are looked at together."""
_COUNTS = ("inserted_blocks", *CAME_IN)
_UNUSED = np.iinfo(np.int64).max
"""Version of a slot that has no block."""
_ANY = int(np.iinfo(np.int64).min)
"""Version that no block is older than."""


class BlockStore:
    """Keeps the last blocks that came and draws windows of them.

    Args:
        block: layout of a block.
        window: which records are drawn together.
        slots: blocks that are kept.
        draw: how windows are drawn.
        generator: source of all randomness; its state is saved with the store's.
        first_priority: priority of an item that becomes drawable; None: the greatest so far.
        max_age: updates since the oldest record of a block beyond which its windows are drawn no more; None: any.
    """

    def __init__(
        self,
        block: Layout,
        window: WindowShape,
        *,
        slots: int,
        draw: Draw,
        generator: np.random.Generator,
        first_priority: FirstPriority | None,
        max_age: int | None = None,
    ) -> None:
        self.slots, self._first_priority, self._max_age = slots, first_priority, max_age
        self._storage = BlockStorage(block, window, slots)
        self._per_slot = self._storage.per_slot
        self._window = (window.burn_in_steps, window.fragment_steps, window.after, window.stride)
        self._trained = slice(window.burn_in_steps, window.burn_in_steps + window.fragment_steps)
        self._draws = Draws(draw, slots * self._per_slot, generator)
        self._generations = np.zeros(slots, np.int64)
        """How often the windows of each slot went: when it was overwritten, and when they were too old."""
        self._oldest = np.full(slots, _UNUSED)
        """Least version that a record of each slot acted on."""
        self._drawn_from = _ANY
        """Least version that a block is drawn from."""
        self.inserted_blocks = 0
        self.inserted_records = 0
        """Records of columns that came in, invalid ones included."""
        self.inserted_valid = 0
        self.inserted_steps = 0
        """Environment steps that came in."""

    @property
    def drawable(self) -> int:
        """Items that can be drawn."""
        return len(self._draws)

    @property
    def blocks(self) -> int:
        """Blocks that are kept now."""
        return min(self.inserted_blocks, self.slots)

    @property
    def expired(self) -> int:
        """Blocks that are kept and too old to be drawn from."""
        return 0 if self._max_age is None else int(np.count_nonzero(self._oldest < self._drawn_from))

    def add(self, block: Block) -> None:
        """Copies a block in, over the oldest one if there is no room."""
        slot = self.inserted_blocks % self.slots
        if self.inserted_blocks >= self.slots:
            self._storage.remove(slot)
            self._end_windows(np.array([slot]))
        whole = self._storage.put(slot, block)
        self._oldest[slot] = block.fields["versions"].min()
        self.inserted_blocks += 1
        self.inserted_records += self._storage.block_records
        self.inserted_valid += int(block.header[BlockHeader.VALID])
        self.inserted_steps += int(block.header[BlockHeader.STEPS])
        self._offer(whole)

    def _end_windows(self, slots: Indices) -> None:
        """Draws no window of some slots any more; priorities that still come for them are dropped."""
        self._draws.remove((slots[:, None] * self._per_slot + np.arange(self._per_slot)).reshape(-1))
        self._generations[slots] += 1

    def _young(self, items: Indices) -> Indices:
        """Leaves out items that are too old."""
        return items if self._max_age is None else items[self._oldest[items // self._per_slot] >= self._drawn_from]

    def _offer(self, items: Indices) -> None:
        """Lets those of the items be drawn that train anything and are not too old."""
        items = self._young(items)
        valid = self._storage.gather("valid", self._storage.places(items))
        items = items[of_columns(valid[self._trained]).any(axis=0)]
        if items.size:
            self._draws.add(items, self._first_priorities(items))

    def _first_priorities(self, items: Indices) -> Array | None:
        if self._first_priority is None or not self._draws.uses_priorities:
            return None
        return self._first_priority(_Windows(self._storage, self._storage.places(items), self._trained.start))

    def expire(self, version: int) -> None:
        """Takes in the trainer's version: from blocks that are too old for it nothing is drawn; they stay for now."""
        if self._max_age is None or version - self._max_age <= self._drawn_from:
            return
        before, self._drawn_from = self._drawn_from, version - self._max_age
        slots = np.flatnonzero((self._oldest >= before) & (self._oldest < self._drawn_from))
        if slots.size:
            self._end_windows(slots)

    def draw(self, fields: Mapping[str, Array]) -> None:
        """Fills the fields of a message of windows (data/windows.py); something must be drawable."""
        items, probabilities = self._draws.draw(fields[SLOT].size)
        places = self._storage.places(items)
        self._storage.fill(places, fields)
        fields[SLOT][:] = items
        fields[GENERATION][:] = self._generations[places.slots]
        fields[PROBABILITY][:] = probabilities

    def update(self, slot: Array, generation: Array, priority: Array) -> int:
        """Replaces the priorities of items that were drawn; of equal items the last counts.

        Returns:
            How many were dropped, because their block was overwritten or became too old meanwhile.

        Raises:
            ValueError: a priority is negative or no number.
        """
        kept = self._generations[slot // self._per_slot] == generation
        dropped = int(kept.size - np.count_nonzero(kept))
        if dropped:
            slot, priority = slot[kept], priority[kept]
        self._draws.prioritize(slot, priority)
        return dropped

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def runs(self, first: int, end: int) -> Iterator[Run]:
        """The blocks from one number up to another, which are all kept; arrays are the store's own memory."""
        while first < end:
            slot = first % self.slots
            count = min(end - first, self.slots - slot)
            yield self._storage.run(slot, count, first)
            first += count

    def save_state(self) -> dict[str, Any]:
        """All but the records, which `runs` gives."""
        used = self.blocks
        return {
            "links": self._storage.save_state(used),
            "draws": self._draws.save_state(used * self._per_slot),
            "generations": self._generations.copy(),
            **({} if self._max_age is None else {"max_age": self._max_age, "drawn_from": self._drawn_from}),
            "window": np.array(self._window, np.int64),
            **{name: getattr(self, name) for name in _COUNTS},
        }

    def fits(self, state: Mapping[str, Any]) -> bool:
        """Whether `load_state` can take that state back: slots, windows and draws are the same."""
        slots, window, age = len(state["generations"]), tuple(state["window"]), state.get("max_age")
        same = slots == self.slots and window == self._window and age == self._max_age
        return same and self._draws.fits(state["draws"])

    def load_state(self, state: Mapping[str, Any], runs: Iterable[Run]) -> None:
        """Takes back what `save_state` gave and `fits`, bit for bit.

        Raises:
            ValueError: some blocks are missing, or of other shapes; an empty store is still empty then.
        """
        inserted = int(state["inserted_blocks"])
        oldest = max(0, inserted - self.slots)
        left = inserted - oldest
        for run in runs:
            numbers = np.arange(run.first, run.first + len(run.group))
            chosen = np.flatnonzero((numbers >= oldest) & (numbers < inserted))
            self._storage.load(numbers[chosen] % self.slots, run, chosen)
            left -= chosen.size
        if left:
            raise ValueError(f"{counted(left, 'block')} that were kept are missing")
        self._storage.load_state(state["links"])
        self._draws.load_state(state["draws"])
        self._generations[:] = state["generations"]
        used = min(inserted, self.slots)
        self._oldest[:used] = self._storage.oldest_versions(used)
        self._drawn_from = int(state.get("drawn_from", _ANY))
        for name in _COUNTS:
            setattr(self, name, int(state[name]))

    def end_sequences(self) -> None:
        """Whatever comes next begins anew; windows that lack records behind the last blocks end with a cut."""
        self._offer(self._storage.end_sequences())

    def take_over(self, deal: Deal, runs: Sequence[Iterable[Run]]) -> None:
        """Fills an empty store with blocks that other stores have kept. Whatever comes next begins anew.

        All their windows are whole therefore: a cut ends those that lack records.

        Args:
            deal: which blocks, and from whom.
            runs: of each of those stores.

        Raises:
            ValueError: some blocks are missing, or of other shapes; the store is then empty still.
        """
        assert not self.inserted_blocks, "only an empty store takes blocks over"
        left = deal.blocks
        for shard, its_runs in enumerate(runs):
            for run in its_runs:
                slots, chosen = deal.slots_of(shard, run)
                self._storage.load(slots, run, chosen)
                left -= chosen.size
        if left:
            raise ValueError(f"{counted(left, 'block')} that were kept are missing")
        self._storage.link(deal.group, deal.sequence)
        self._oldest[: deal.blocks] = self._storage.oldest_versions(deal.blocks)
        if all(state.get("max_age") == self._max_age for state in deal.states):
            self._drawn_from = max((int(state.get("drawn_from", _ANY)) for state in deal.states), default=_ANY)
        self.inserted_blocks = deal.blocks
        for name, count in deal.counts.items():
            setattr(self, name, count)
        shares = self._known_shares(deal)
        for first in range(0, deal.blocks, _BLOCKS_AT_ONCE):
            end = min(first + _BLOCKS_AT_ONCE, deal.blocks)
            self._offer_again(np.arange(first * self._per_slot, end * self._per_slot), shares)

    def _known_shares(self, deal: Deal) -> tuple[NDArray[np.bool_], NDArray[np.float64], float] | None:
        """Which items have a priority from before, that to the power of alpha, and the greatest; None if none has."""
        known, shares = np.zeros((deal.blocks, self._per_slot), bool), np.zeros((deal.blocks, self._per_slot))
        greatest = 1.0
        for shard, state in enumerate(deal.states):
            used = len(state["links"]["group"])
            found = self._draws.known_shares(state["draws"], used * self._per_slot)
            if found is None or tuple(state["window"]) != self._window:
                return None
            mine, theirs = deal.moved(shard)
            known[mine], shares[mine] = (array.reshape(used, self._per_slot)[theirs] for array in found)
            greatest = max(greatest, float(state["draws"]["greatest"]))
        return known.reshape(-1), shares.reshape(-1), greatest

    def _offer_again(self, items: Indices, shares: tuple[NDArray[np.bool_], NDArray[np.float64], float] | None) -> None:
        if shares is not None:
            known, share, greatest = shares
            old, items = self._young(items[known[items]]), items[~known[items]]
            self._draws.add_known(old, share[old], greatest)
        self._offer(items)


class _Windows(Mapping[str, Array]):
    """Fields of some windows without their burn-in, each gathered when it is asked for."""

    def __init__(self, storage: BlockStorage, places: Places, burn_in: int) -> None:
        self._storage, self._places, self._burn_in = storage, places, burn_in

    def __getitem__(self, name: str) -> Array:
        if name not in self._storage.names:
            raise KeyError(name)
        found = self._storage.gather(name, self._places)
        return found if name.startswith(STATE) else found[self._burn_in :]

    def __iter__(self) -> Iterator[str]:
        return iter(self._storage.names)

    def __len__(self) -> int:
        return len(self._storage.names)
