"""Whom the sides of each environment of a group are played by: matches as the matchmaker deals them, in lots.

    lot --> a match for each environment --(its episode ends)--> result, next match
    half of the lot used --(results, MATCH_REQUESTS)--> matchmaker --(MATCHES)--> the next lot

A group of versions alone asks when fewer are left than it has environments: what is dealt beyond the games that count
is lost.

Letters: E environments, S sides, L matches of a lot. Free of torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Inbox, Outbox
from srlhpc.comm.protocol import MatchHeader
from srlhpc.data.matches import LIVE, mean_return
from srlhpc.environment import Episode

_NO_MATCH = -1


@dataclass(frozen=True)
class MatchChannels:
    """A group's links to the matchmaker and back."""

    requests: Outbox
    matches: Inbox


class GroupMatches:
    """The matches of one group.

    Args:
        group: its number.
        channels: its links.
        sides: names of the agents of each side, in the order of seats.
        num_environments: E.
        lot: L.
        measures: whether only versions play.
    """

    def __init__(
        self,
        group: int,
        channels: MatchChannels,
        sides: Sequence[Sequence[str]],
        *,
        num_environments: int,
        lot: int,
        measures: bool = False,
    ) -> None:
        self._group, self._channels, self._lot = group, channels, lot
        self._few = min(num_environments, lot) - 1 if measures else lot // 2
        """Matches left, with which it asks for more."""
        self._sides = [tuple(agents) for agents in sides]
        self.players: NDArray[np.int64] = np.full((len(sides), num_environments), LIVE, np.int64)
        """`[S, E]`: updates of the version that plays a side, or LIVE."""
        self._match = np.full(num_environments, _NO_MATCH, np.int64)
        self._dealt: deque[tuple[int, tuple[int, ...]]] = deque()
        self._results: deque[tuple[int, tuple[float, ...]]] = deque()
        self._asked = False

    def are_ready(self) -> bool:
        """Gives environments without one their next match; false while there is none left."""
        self._receive()
        for env in np.flatnonzero(self._match == _NO_MATCH).tolist():
            if not self._dealt:
                break
            self._match[env], self.players[:, env] = self._dealt.popleft()
        self._ask()
        return bool((self._match != _NO_MATCH).all())

    def _receive(self) -> None:
        self._channels.matches.poll()
        while (message := self._channels.matches.take()) is not None:
            count = int(message.header[MatchHeader.COUNT])
            matches, players = (message.fields[name][:count].tolist() for name in ("matches", "players"))
            self._dealt.extend(zip(matches, map(tuple, players), strict=True))
            self._channels.matches.release(message)
            self._asked = False

    def _ask(self) -> None:
        """Sends results, and asks for the next lot when few matches are left."""
        self._channels.requests.poll()
        if self._asked or len(self._dealt) > self._few:
            return
        message = self._channels.requests.acquire()
        if message is None:
            return
        sent = [self._results.popleft() for _ in range(min(len(self._results), self._lot))]
        for place, (match, returns) in enumerate(sent):
            message.fields["matches"][place] = match
            message.fields["returns"][place] = returns
        message.header[MatchHeader.GROUP] = self._group
        message.header[MatchHeader.COUNT] = len(sent)
        self._channels.requests.send(message)
        self._asked = True

    def ended(self, episodes: Sequence[Episode]) -> None:
        """The matches of these environments are decided."""
        for episode in episodes:
            env = episode.environment
            returns = tuple(mean_return(episode.returns, agents) for agents in self._sides)
            self._results.append((int(self._match[env]), returns))
            self._match[env] = _NO_MATCH

    def end(self) -> bool:
        """Says LAST; false while there is no room for it."""
        return self._channels.requests.send_last()

    def save_state(self) -> dict[str, Any]:
        """What was dealt, is played, and is to be reported."""
        sides = len(self._sides)
        return {
            "players": self.players.copy(),
            "match": self._match.copy(),
            "asked": self._asked,
            "dealt": np.array([match for match, _ in self._dealt], np.int64),
            "dealt_players": np.array([players for _, players in self._dealt], np.int64).reshape(-1, sides),
            "decided": np.array([match for match, _ in self._results], np.int64),
            "returns": np.array([returns for _, returns in self._results], np.float64).reshape(-1, sides),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.players[...], self._match[...] = state["players"], state["match"]
        self._asked = bool(state["asked"])
        self._dealt = deque(zip(state["dealt"].tolist(), map(tuple, state["dealt_players"].tolist()), strict=True))
        self._results = deque(zip(state["decided"].tolist(), map(tuple, state["returns"].tolist()), strict=True))
