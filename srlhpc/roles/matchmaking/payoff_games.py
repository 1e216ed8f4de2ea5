"""Versions against each other: who still has to play whom, what came of it, and which mixtures follow. Free of torch.

    version written --> candidate --(every pairing with the players has its games)--> player; mixtures are solved again

Versions become players one after the other, those with the fewest updates first, so each step of a run has one table
without gaps. Every game that was dealt counts, and as many of each pairing: whoever took what comes first would prefer
short games. Letters: R, C players of the first and the second side, n games.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.league.game import Game, Mixtures
from srlhpc.league.payoffs import FloatArray, PayoffTable
from srlhpc.roles.matchmaking.opponents import checked_chances

Pairing = tuple[int, int]
"""Updates of the versions that play the first and the second side."""


class PayoffGames:
    """The table of payoffs of a game of two sides, which grows with the versions.

    Args:
        policies: of both sides; may be the same.
        episodes: games of every pairing.
        solve: mixtures of both sides from their payoffs.
    """

    def __init__(self, policies: tuple[str, str], episodes: int, solve: Callable[[Game], Mixtures]) -> None:
        self._policies, self._episodes, self._solve = policies, episodes, solve
        self._versions: dict[str, list[int]] = {policy: [] for policy in policies}
        """Updates of the versions that were written, candidates and players."""
        self._players: tuple[list[int], list[int]] = ([], [])
        """Updates of those of each side, in the order in which they became players."""
        self.table = PayoffTable.empty([], [])
        """All games, also of the candidate; players are named by their updates."""
        self._games: Counter[Pairing] = Counter()
        """Games of the table by pairing."""
        self._mixtures: Mixtures | None = None

    # --- versions ------------------------------------------------------------------------------------------------

    def begin(self, policy: str, versions: Collection[int]) -> None:
        """These versions are there at the start; games of others, which the run has yet to make again, are left out."""
        if policy not in self._versions:
            return
        self._versions[policy] = sorted(versions)
        has_lost = False
        for players, of_side in zip(self._players, self._policies, strict=True):
            if of_side == policy and not set(players) <= set(versions):
                players[:] = [version for version in players if version in versions]
                has_lost = True
        names = {str(version) for version in versions}
        self.table = self.table.only(
            *(
                [name for name in named if of_side != policy or name in names]
                for of_side, named in zip(self._policies, (self.table.rows, self.table.columns), strict=True)
            )
        )
        self._games = _counts(self.table)
        if has_lost:
            self._mix()
        self._admit()

    def there(self, policy: str, versions: Sequence[int]) -> None:
        """These versions are there."""
        if policy in self._versions:
            self._versions[policy] = sorted({*self._versions[policy], *versions})
            self._admit()

    @property
    def candidate(self) -> tuple[int, int] | None:
        """Side and updates of the version that becomes a player next; None: all are."""
        waiting = [
            (updates, side)
            for side, policy in enumerate(self._policies)
            for updates in self._versions[policy]
            if updates not in self._players[side]
        ]
        if not waiting:
            return None
        updates, side = min(waiting)
        return side, updates

    def mixture(self, side: int, versions: Sequence[int]) -> FloatArray:
        """How often each of some versions of a side is met, `[N]`; before there is a player, only the oldest."""
        chances = np.zeros(len(versions))
        if self._mixtures is None:
            chances[0] = 1.0
            return chances
        place = {version: i for i, version in enumerate(versions)}
        for version, chance in zip(self._players[side], self._mixtures[side], strict=True):
            chances[place[version]] = chance
        return chances

    # --- games ---------------------------------------------------------------------------------------------------

    def missing(self, under_way: Counter[Pairing]) -> Counter[Pairing]:
        """Games that the candidate lacks and nobody plays, in the order in which they are to be dealt."""
        found: Counter[Pairing] = Counter()
        for pairing in self._pairings():
            if (left := self._episodes - self._games[pairing] - under_way[pairing]) > 0:
                found[pairing] = left
        return found

    @property
    def filler(self) -> Pairing:
        """Who plays where a group has to go on and no game is missing; such games do not count."""
        return (self._players[0] or self._versions[self._policies[0]])[-1], (
            self._players[1] or self._versions[self._policies[1]]
        )[-1]

    def add(self, players: NDArray[np.int64], returns: NDArray[np.float64]) -> None:
        """Counts games.

        Args:
            players: `[n, 2]`: updates of the version that played each side.
            returns: `[n, 2]`: of both sides. Where a side was not in the game nobody got anything: 0.
        """
        for row, column in {tuple(pairing) for pairing in players.tolist()}:
            own = (players == (row, column)).all(axis=1)
            if str(row) not in self.table.rows or str(column) not in self.table.columns:
                self.table = self.table.merged(PayoffTable.empty([str(row)], [str(column)]))
            self.table.add(str(row), str(column), np.nan_to_num(returns[own]))
            self._games[row, column] += int(own.sum())
        self._admit()

    def _pairings(self) -> list[Pairing]:
        """What the candidate plays: each player of the other side."""
        if (candidate := self.candidate) is None:
            return []
        side, updates = candidate
        others = self._players[1 - side]
        return list(product([updates], others) if side == 0 else product(others, [updates]))

    def _admit(self) -> None:
        """Makes players of candidates whose games are played."""
        grown = False
        while (candidate := self.candidate) is not None and not self.missing(Counter()):
            side, updates = candidate
            self._players[side].append(updates)
            grown = True
        if grown:
            self._mix()

    def _mix(self) -> None:
        if not all(self._players):
            self._mixtures = None
            return
        mixed = self._solve(self.game())
        self._mixtures = Mixtures(
            *(checked_chances(shares, len(of_side)) for shares, of_side in zip(mixed, self._players, strict=True))
        )

    def game(self) -> Game:
        """Mean returns of both sides for every pair of players, `[R, C]`."""
        rows, columns = (list(map(str, players)) for players in self._players)
        return Game(*self.table.only(rows, columns).mean_returns)

    # --- states --------------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """What `status` says."""
        candidate, mixtures = self.candidate, self._mixtures
        pairings = self._pairings()
        return {
            "players": [list(players) for players in self._players],
            "mixtures": None if mixtures is None else [shares.tolist() for shares in mixtures],
            "candidate": None
            if candidate is None
            else {
                "side": candidate[0],
                "version": candidate[1],
                "games": sum(self._games[pairing] for pairing in pairings),
                "needs": self._episodes * len(pairings),
            },
        }

    def save_state(self) -> dict[str, Any]:
        """Players and the table; versions are told at the start."""
        names = {"rows": self.table.rows, "columns": self.table.columns}
        return {
            **{name: np.array([int(version) for version in versions], np.int64) for name, versions in names.items()},
            **self.table.save_state(),
            **{f"players-{side}": np.array(players, np.int64) for side, players in enumerate(self._players)},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave, and solves again."""
        rows, columns = (list(map(str, state[name].tolist())) for name in ("rows", "columns"))
        self.table = PayoffTable.from_state(rows, columns, state)
        self._games = _counts(self.table)
        self._players = (state["players-0"].tolist(), state["players-1"].tolist())
        self._mix()
        for policy, players in zip(self._policies, self._players, strict=True):
            self.there(policy, players)


def _counts(table: PayoffTable) -> Counter[Pairing]:
    """Games by pairing."""
    return Counter(
        {
            (int(row), int(column)): int(games)
            for row, counts in zip(table.rows, table.counts, strict=True)
            for column, games in zip(table.columns, counts, strict=True)
        }
    )
