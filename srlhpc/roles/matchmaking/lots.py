"""Matches that were dealt, by lot, until their results are in. Free of torch. Letters: L matches of a lot, S sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.matches import LIVE
from srlhpc.roles.matchmaking.opponents import FloatArray, IntArray


class Results(NamedTuple):
    """Matches of one lot that were decided."""

    players: IntArray
    """`[n, S]`."""
    returns: FloatArray
    """`[n, S]`."""


@dataclass
class _Lot:
    group: int
    players: IntArray
    """`[L, S]`."""
    is_open: NDArray[np.bool_]
    """`[L]`: matches without a result that will count."""


class Lots:
    """All matches under way, numbered in the order in which they were dealt.

    Args:
        size: L.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lots: dict[int, _Lot] = {}
        """Lots by the number of their first match."""
        self.dealt = 0
        """Matches so far."""

    def deal(self, group: int, players: IntArray, counting: int) -> IntArray:
        """Deals a lot to a group.

        Args:
            group: its number.
            players: `[L, S]`.
            counting: how many of its results count, the first ones; for the others nobody waits.

        Returns:
            Numbers of its matches, `[L]`.
        """
        first = self.dealt
        if counting:
            self._lots[first] = _Lot(group, players, np.arange(self._size) < counting)
        self.dealt += self._size
        return first + np.arange(self._size)

    def decided(self, group: int, matches: IntArray, returns: FloatArray) -> Iterator[Results]:
        """Results of matches that were dealt to the group, count, and have none yet."""
        first = matches - matches % self._size
        for start in np.unique(first).tolist():
            lot, own = self._lots.get(start), first == start
            if lot is None or lot.group != group:
                continue
            places = matches[own] - start
            counts = lot.is_open[places]
            lot.is_open[places] = False
            if not lot.is_open.any():
                del self._lots[start]
            yield Results(lot.players[places[counts]], returns[own][counts])

    def versions(self, sides: Sequence[int]) -> set[int]:
        """Updates of those that play some sides in matches under way."""
        under_way = (lot.players[lot.is_open][:, sides] for lot in self._lots.values())
        return {version for players in under_way for version in players.ravel().tolist()} - {LIVE}

    def pairings(self, groups: Collection[int]) -> Counter[tuple[int, int]]:
        """How many matches of two sides that are under way in some groups have which players."""
        found: Counter[tuple[int, int]] = Counter()
        for lot in self._lots.values():
            if lot.group in groups:
                found.update((first, second) for first, second in lot.players[lot.is_open].tolist())
        return found

    def has(self, group: int) -> bool:
        """Whether a group has matches under way that count."""
        return any(lot.group == group for lot in self._lots.values())

    def forget(self, groups: Collection[int]) -> None:
        """Nothing comes any more of what these groups play."""
        self._lots = {start: lot for start, lot in self._lots.items() if lot.group not in groups}

    def save_state(self) -> dict[str, Any]:
        """Each lot; how many were dealt is saved with the results."""
        return {
            str(start): {"group": lot.group, "players": lot.players, "is_open": lot.is_open.copy()}
            for start, lot in self._lots.items()
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave."""
        self._lots = {
            int(start): _Lot(int(saved["group"]), np.asarray(saved["players"]), np.array(saved["is_open"], np.bool_))
            for start, saved in state.items()
        }
