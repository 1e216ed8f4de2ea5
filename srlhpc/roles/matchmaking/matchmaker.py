"""The matchmaker: deals matches to groups, and takes in what came of them. Beside the coordinator, free of torch.

    request (results of decided matches) --(versions are there)--> lot of matches --> request ...

A match is one episode of one environment. In a group that learns against the past one side plays as it is now, and
every other is played by a version; in one that measures payoffs versions play all sides. Letters: L matches of a lot,
S sides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.comm.protocol import MatchHeader
from srlhpc.data.matches import LIVE
from srlhpc.roles.matchmaking.lots import Lots
from srlhpc.roles.matchmaking.opponents import FloatArray, IntArray, MatchSide, Opponents
from srlhpc.roles.matchmaking.payoff_games import Pairing, PayoffGames
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import TimeUse

_PAYOFFS = "payoffs"


@dataclass(frozen=True)
class MatchGroup:
    """A group that matches are dealt to."""

    actor: int
    """Address of its actor."""
    learner: int | None
    """The only side that learns; None: all do, and all play as they are now, unless it measures."""
    servers: tuple[int, ...]
    """Addresses of the policy servers that act for each side."""
    measures: bool = False
    """Whether versions play each other."""


class Matchmaker(Role):
    """Deals lots, takes in results.

    Args:
        sides: in the order of seats.
        groups: by number.
        opponents: whom they meet.
        lot: matches dealt at once.
        payoffs: of versions against each other; None: no group measures.
        requests: a slot for each group.
        outboxes: of each group.
    """

    label = "matchmaker-0"

    def __init__(
        self,
        sides: Sequence[MatchSide],
        groups: Sequence[MatchGroup],
        opponents: Opponents,
        *,
        lot: int,
        payoffs: PayoffGames | None = None,
        requests: Inbox,
        outboxes: Mapping[int, Outbox],
    ) -> None:
        self._sides, self._groups, self._opponents, self._lot = sides, groups, opponents, lot
        self._payoffs = payoffs
        self._requests, self._outboxes = requests, outboxes
        self._lots = Lots(lot)
        self._measuring = {number for number, group in enumerate(groups) if group.measures}
        self._self_played = 0
        self._parked: deque[Message] = deque()
        self._changed = False
        """Whether a request that is parked may be answered now."""
        self._dead: set[int] = set()
        self._time = TimeUse()

    # --- versions ------------------------------------------------------------------------------------------------

    def begin(self, policy: str, versions: Collection[int]) -> None:
        """These versions are there at the start."""
        self._opponents.begin(policy, versions)
        if self._payoffs is not None:
            self._payoffs.there(policy, sorted(versions))
        self._changed = True

    def coming(self, policy: str, updates: int) -> Collection[int]:
        """A version is about to be written.

        Returns:
            Versions of the policy that matches under way are played with: not to be removed yet.
        """
        self._opponents.coming(policy, updates)
        return self._lots.versions([place for place, side in enumerate(self._sides) if side.policy == policy])

    def written(self, policy: str, updates: int) -> None:
        """A version may be met from now on."""
        self._opponents.written(policy, updates)
        if self._payoffs is not None:
            self._payoffs.there(policy, [updates])
        self._changed = True

    # --- matches -------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        self._time.spent("input")
        self._requests.poll()
        busy = False
        while (message := self._requests.take()) is not None:
            self._take_results(message)
            self._parked.append(message)
            busy = self._changed = True
        for message in list(self._parked) if self._changed else ():
            if self._may_deal(message):
                self._parked.remove(message)
                self._answer(message)
                busy = True
        self._changed = False
        if busy:
            self._time.spent("computing")
        return busy

    def _may_deal(self, request: Message) -> bool:
        group = self._groups[request.slot]
        if not group.measures:
            return self._opponents.are_there(group.learner)
        assert self._payoffs is not None
        # A group stands still while one of its environments has no match: it goes on until all that counts is played.
        return self._lots.has(request.slot) or bool(self._missing())

    def _missing(self) -> Mapping[Pairing, int]:
        """Games of versions that nobody plays yet."""
        assert self._payoffs is not None
        return self._payoffs.missing(self._lots.pairings(self._measuring))

    def _answer(self, request: Message) -> None:
        group = self._groups[request.slot]
        message = None if group.actor in self._dead else self._outboxes[request.slot].acquire()
        if message is not None:
            players, counts = self._measured() if group.measures else (self._players(group), self._lot)
            message.fields["matches"][...] = self._lots.deal(request.slot, players, counts)
            message.fields["players"][...] = players
            message.header[MatchHeader.GROUP] = request.slot
            message.header[MatchHeader.COUNT] = self._lot
            self._outboxes[request.slot].send(message)
        self._requests.release(request)

    def _players(self, group: MatchGroup) -> IntArray:
        """Who plays the sides of a lot, `[L, S]`."""
        players = np.full((self._lot, len(self._sides)), LIVE, np.int64)
        for side in self._opponents.past_sides(group.learner):
            assert group.learner is not None
            players[:, side] = self._opponents.draw(group.learner, side, group.servers[side], self._lot)
        return players

    def _measured(self) -> tuple[IntArray, int]:
        """Who plays the sides of a lot of versions, `[L, S]`, and how many of its games count, the first ones."""
        assert self._payoffs is not None
        players = np.empty((self._lot, len(self._sides)), np.int64)
        dealt = 0
        for pairing, games in self._missing().items():
            end = min(dealt + games, self._lot)
            players[dealt:end] = pairing
            dealt = end
        players[dealt:] = self._payoffs.filler
        return players, dealt

    def _take_results(self, message: Message) -> None:
        """Counts results of matches that were dealt to the group and have none yet."""
        count = int(message.header[MatchHeader.COUNT])
        matches, returns = message.fields["matches"][:count], message.fields["returns"][:count]
        for found in self._lots.decided(message.slot, matches, returns):
            self._count(self._groups[message.slot], found.players, found.returns)

    def _count(self, group: MatchGroup, players: IntArray, returns: FloatArray) -> None:
        if group.measures:
            assert self._payoffs is not None
            self._payoffs.add(players, returns)
            return
        if group.learner is None:
            self._self_played += len(returns)
            return
        for side in self._opponents.past_sides(group.learner):
            results = self._opponents.between(group.learner, side)
            results.add(players[:, side], returns[:, [group.learner, side]])

    # --- role ----------------------------------------------------------------------------------------------------

    def forget(self, addresses: Collection[int]) -> None:
        new = set(addresses) - self._dead
        self._dead |= new
        for address in new:
            self._requests.forget(address)
        self._lots.forget([number for number, group in enumerate(self._groups) if group.actor in new])
        self._changed = True

    def counters(self) -> dict[str, float]:
        return self._time.counters()

    @property
    def moves(self) -> int:
        return self._lots.dealt

    @property
    def is_done(self) -> bool:
        """It ends with the coordinator."""
        return True

    def waits_for(self) -> str:
        learns = any(not self._groups[message.slot].measures for message in self._parked)
        return "waits for the first version of a policy" if learns else ""

    def summary(self) -> dict[str, Any]:
        """What `status` says."""
        spent = self._time.counters()
        return {
            "busy": spent["computing_seconds"] / max(spent["seconds"], 1e-9),
            "self_play": self._self_played,
            "past": self._opponents.summary(),
            **({} if self._payoffs is None else {"payoffs": self._payoffs.summary()}),
        }

    def results_state(self) -> dict[str, Any]:
        """What every checkpoint has: results, and what is drawn next; matches under way begin anew."""
        payoffs = {} if self._payoffs is None else {_PAYOFFS: self._payoffs.save_state()}
        return self._opponents.results_state() | {"self_played": self._self_played, "dealt": self._lots.dealt} | payoffs

    def load_results(self, state: Mapping[str, Any]) -> None:
        """Takes back what `results_state` gave."""
        self._opponents.load_results(state)
        self._self_played, self._lots.dealt = int(state["self_played"]), int(state["dealt"])
        if self._payoffs is not None and _PAYOFFS in state:
            self._payoffs.load_state(state[_PAYOFFS])

    def save_state(self) -> dict[str, Any]:
        """All of it, for serial runs."""
        return {**self.results_state(), **self._opponents.save_state(), "lots": self._lots.save_state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.load_results(state)
        self._opponents.load_state(state)
        self._lots.load_state(state.get("lots", {}))

    def close(self) -> None:
        self._requests.close()
