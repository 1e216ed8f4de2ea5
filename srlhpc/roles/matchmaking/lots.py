"""Matches that were dealt, by lot, until their results are in. Free of torch. Letters: L matches of a lot, S sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.matches import LIVE
from srlhpc.league.payoffs import FloatArray, IntArray


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
        measuring: groups whose matches are counted by their players, who play two sides.
    """

    def __init__(self, size: int, measuring: Collection[int] = ()) -> None:
        self._size, self._measuring = size, frozenset(measuring)
        self._lots: dict[int, _Lot] = {}
        """Lots by the number of their first match."""
        self._of_group: Counter[int] = Counter()
        """Lots by group."""
        self.under_way: Counter[tuple[int, int]] = Counter()
        """Matches of the groups that measure, by the players of both sides."""
        self._dealt = 0

    def deal(self, group: int, players: IntArray, counting: int) -> IntArray:
        """Deals a lot to a group.

        Args:
            group: its number.
            players: `[L, S]`.
            counting: how many of its results count, the first ones; for the others nobody waits.

        Returns:
            Numbers of its matches, `[L]`.
        """
        first = self._dealt
        if counting:
            self._add(first, _Lot(group, players, np.arange(self._size) < counting))
        self._dealt += self._size
        return first + np.arange(self._size)

    @property
    def dealt(self) -> int:
        """Matches so far."""
        return self._dealt

    @dealt.setter
    def dealt(self, matches: int) -> None:
        # A lot begins at a multiple of its size, also where it was another before.
        self._dealt = -(-matches // self._size) * self._size

    def _add(self, first: int, lot: _Lot) -> None:
        self._lots[first] = lot
        self._of_group[lot.group] += 1
        self._count(lot, lot.players[lot.is_open], 1)

    def _drop(self, first: int) -> None:
        lot = self._lots.pop(first)
        self._of_group[lot.group] -= 1
        self._count(lot, lot.players[lot.is_open], -1)

    def _count(self, lot: _Lot, players: IntArray, each: int) -> None:
        if lot.group in self._measuring:
            for first, second in players.tolist():
                self.under_way[first, second] += each

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
            self._count(lot, lot.players[places[counts]], -1)
            if not lot.is_open.any():
                self._drop(start)
            yield Results(lot.players[places[counts]], returns[own][counts])

    def versions(self, sides: Sequence[int]) -> set[int]:
        """Updates of those that play some sides in matches under way."""
        under_way = (lot.players[lot.is_open][:, sides] for lot in self._lots.values())
        return {version for players in under_way for version in players.ravel().tolist()} - {LIVE}

    def has(self, group: int) -> bool:
        """Whether a group has matches under way that count."""
        return self._of_group[group] > 0

    def forget(self, groups: Collection[int]) -> None:
        """Nothing comes any more of what these groups play."""
        for first in [first for first, lot in self._lots.items() if lot.group in groups]:
            self._drop(first)

    def save_state(self) -> dict[str, Any]:
        """Each lot; how many were dealt is saved with the results."""
        return {
            str(start): {"group": lot.group, "players": lot.players, "is_open": lot.is_open.copy()}
            for start, lot in self._lots.items()
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave, where nothing is under way."""
        for first, saved in state.items():
            players, is_open = np.asarray(saved["players"]), np.array(saved["is_open"], np.bool_)
            self._add(int(first), _Lot(int(saved["group"]), players, is_open))
