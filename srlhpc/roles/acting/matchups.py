"""Who meets whom in a round of an evaluator: versions of policies, one of which is what is live now.

round --> pairings, one for each side, player and opponent --(exactly n episodes each)--> rows
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from srlhpc.data.matches import mean_return, scored
from srlhpc.environment import Episode
from srlhpc.policies.policy import Policy
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.round import Round
from srlhpc.specs.evaluators import ALL_VERSIONS, LIVE

_NOW = -1
"""In place of a version: what is live."""


@dataclass(frozen=True)
class Met:
    """What a side meets, as the spec names it."""

    side: int
    """The side that is measured."""
    policy: str
    """Who plays all others."""
    version: str


@dataclass(frozen=True)
class Pairing:
    """Who plays some episodes."""

    side: int
    """The side that is measured."""
    player: int
    """Version of its policy, or what is live."""
    opponent: str
    """Policy of all other sides."""
    version: int
    """Version of it."""


@dataclass(frozen=True)
class PlayedSide:
    """A side."""

    name: str
    policy: str
    agents: Sequence[str]
    """Their names."""


class Matchups:
    """The pairings of rounds, and their players.

    Args:
        sides: in the order of seats.
        met: what is measured.
        players: words for versions that are measured: `live`, tags, or `versions`.
        tags: name to updates.
        kept: policy and the version that is live, to the updates of earlier ones that are kept, fewest first.
        trained: policies that have versions.
        network: a network of a policy, of its own.
        load: gives a network a version of a policy; false if its file is gone.
        player: a network, a policy and a side to who plays it.
    """

    def __init__(
        self,
        sides: Sequence[PlayedSide],
        met: Sequence[Met],
        players: Sequence[str],
        *,
        tags: Mapping[str, int],
        kept: Callable[[str, int], Sequence[int]],
        trained: Sequence[str],
        network: Callable[[str], Policy],
        load: Callable[[Policy, str, int], bool],
        player: Callable[[Policy, str, int], Player],
    ) -> None:
        self._sides, self._met, self._players, self._tags = sides, met, players, tags
        self._kept, self._trained = kept, trained
        # What stays what it is: scores against it compare over a run.
        self._fixed = {
            Pairing(met.side, _NOW, met.policy, tags.get(met.version, _NOW))
            for met in met
            if met.policy not in trained or met.version in tags
        }
        self._network, self._load, self._player = network, load, player
        self._networks: dict[tuple[str, str], Policy] = {}
        """Use and policy to the network of versions."""
        self._loaded: dict[tuple[str, str], int] = {}
        """The version that it has."""
        self._seated: dict[tuple[int, int], Player] = {}
        """Identity of a network, and a side."""
        self._decided: set[Pairing] = set()
        """Pairings that were played and would give the same again."""

    def pairings(self, now: Mapping[str, int]) -> list[Pairing]:
        """All of a round that begins, each once; no version meets itself.

        Args:
            now: policy to the version that is live, of those that are trained.
        """
        kept = {policy: self._kept(policy, live) for policy, live in now.items()}
        found = (
            Pairing(met.side, player, met.policy, version)
            for met in self._met
            for player in self._versions(self._sides[met.side].policy, self._players, kept)
            for version in self._versions(met.policy, [met.version], kept)
            if player == _NOW or (self._sides[met.side].policy, player) != (met.policy, version)
        )
        return [pairing for pairing in dict.fromkeys(found) if pairing not in self._decided]

    def _versions(self, policy: str, words: Sequence[str], kept: Mapping[str, Sequence[int]]) -> list[int]:
        """What some words mean now, each version once."""
        found: list[int] = []
        own = kept.get(policy, [])
        for word in words:
            if word == LIVE:
                found.append(_NOW)
            elif word == ALL_VERSIONS:
                found += own
            elif self._tags[word] in own:
                found.append(self._tags[word])
        return list(dict.fromkeys(found))

    def players(self, pairing: Pairing, live: Mapping[str, Policy]) -> list[Player] | None:
        """Who plays a pairing, in the order of sides; None if a version is gone.

        Args:
            pairing: of this round.
            live: policy to the network of what is live.
        """
        own = self._of("player", self._sides[pairing.side].policy, pairing.player, live)
        other = self._of("opponent", pairing.opponent, pairing.version, live)
        if own is None or other is None:
            return None
        return [
            self._at(own, self._sides[side].policy, side)
            if side == pairing.side
            else self._at(other, pairing.opponent, side)
            for side in range(len(self._sides))
        ]

    def _of(self, use: str, policy: str, version: int, live: Mapping[str, Policy]) -> Policy | None:
        if version == _NOW and policy in live:
            return live[policy]
        key = (use, policy)
        if key not in self._networks:
            self._networks[key] = self._network(policy)
        if version != _NOW and self._loaded.get(key) != version:
            self._loaded.pop(key, None)
            if not self._load(self._networks[key], policy, version):
                return None
            self._loaded[key] = version
        return self._networks[key]

    def _at(self, network: Policy, policy: str, side: int) -> Player:
        key = (id(network), side)
        if key not in self._seated:
            self._seated[key] = self._player(network, policy, side)
        return self._seated[key]

    def decide(self, pairings: Iterable[Pairing]) -> None:
        """A round has ended; those of its pairings that would give the same again are not played again."""
        self._decided |= {
            pairing
            for pairing in pairings
            if pairing.player != _NOW and (pairing.version != _NOW or pairing.opponent not in self._trained)
        }

    def row(self, pairing: Pairing, played: Round, now: Mapping[str, int]) -> dict[str, Any]:
        """What came of a pairing; the greater mean return of a side's agents wins.

        Args:
            pairing: that was played.
            played: its episodes.
            now: policy to the version that is live, of those that are trained.
        """
        ended = [self._both(pairing.side, episode) for episode in played.episodes]
        returns = np.array(ended, np.float64).reshape(-1, 2)
        # Of an episode in which a side had no agent nothing follows.
        returns = returns[np.isfinite(returns).all(axis=1)]
        means = returns.mean(axis=0).tolist() if len(returns) else [None, None]
        return {
            "side": self._sides[pairing.side].name,
            "player": _name(self._sides[pairing.side].policy, pairing.player, now),
            "opponent": _name(pairing.opponent, pairing.version, now),
            "games": len(returns),
            "unfinished": played.unfinished,
            "wins": int(np.count_nonzero(returns[:, 0] > returns[:, 1])),
            "losses": int(np.count_nonzero(returns[:, 0] < returns[:, 1])),
            "return_mean": means[0],
            "opponent_return_mean": means[1],
        }

    def _both(self, side: int, episode: Episode) -> tuple[float, float]:
        """Mean return of a side, and the greatest of another one."""
        means = [mean_return(episode.returns, played.agents) for played in self._sides]
        return means.pop(side), float(np.max(means))

    def win_rate(self, rows: Mapping[Pairing, Mapping[str, Any]]) -> float | None:
        """Score of what is live a game, a draw half: against those that stay what they are if any are named, else all.

        None where it would compare with no other: not all of these were there yet, or games were given up.

        Args:
            rows: of a round.
        """
        counted = self._fixed or {pairing for pairing in rows if pairing.player == _NOW}
        found = [rows[pairing] for pairing in rows if pairing in counted]
        if len(found) < len(counted) or any(row["unfinished"] for row in found):
            return None
        scores = [scored(row) / row["games"] for row in found if row["games"]]
        return float(np.mean(scores)) if scores else None

    def save_state(self) -> dict[str, Any]:
        """Pairings that are decided."""
        return {"decided": json.dumps(sorted(astuple(pairing) for pairing in self._decided))}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave."""
        self._decided = {Pairing(*row) for row in json.loads(state["decided"])}


def _name(policy: str, version: int, now: Mapping[str, int]) -> str:
    """`everybody@50`; of who never changes the name alone."""
    number = now.get(policy) if version == _NOW else version
    return policy if number is None else f"{policy}@{number}"
