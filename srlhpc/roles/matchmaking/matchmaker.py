"""The matchmaker: deals matches to groups, and takes in what came of them. Beside the coordinator, free of torch.

    request (results of decided matches) --(versions are there)--> lot of matches --> request ...

A match is one episode of one environment. In a group that learns against the past one side plays as it is now, and
every other is played by a version. Letters: L matches of a lot, S sides.
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
from srlhpc.roles.matchmaking.opponents import FloatArray, IntArray, MatchSide, Opponents
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import TimeUse


@dataclass(frozen=True)
class MatchGroup:
    """A group that matches are dealt to."""

    actor: int
    """Address of its actor."""
    learner: int | None
    """The only side that learns; None: all do, and all play as they are now."""
    servers: tuple[int, ...]
    """Addresses of the policy servers that act for each side."""


@dataclass
class _Lot:
    """Matches that were dealt together."""

    group: int
    players: IntArray
    """`[L, S]`."""
    is_open: np.ndarray[Any, np.dtype[np.bool_]]
    """`[L]`: matches without a result."""


class Matchmaker(Role):
    """Deals lots, takes in results.

    Args:
        sides: in the order of seats.
        groups: by number.
        opponents: whom they meet.
        lot: matches dealt at once.
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
        requests: Inbox,
        outboxes: Mapping[int, Outbox],
    ) -> None:
        self._sides, self._groups, self._opponents, self._lot = sides, groups, opponents, lot
        self._requests, self._outboxes = requests, outboxes
        self._lots: dict[int, _Lot] = {}
        """Lots by the number of their first match."""
        self._dealt = 0
        self._self_played = 0
        self._parked: deque[Message] = deque()
        self._dead: set[int] = set()
        self._time = TimeUse()

    # --- versions ------------------------------------------------------------------------------------------------

    def begin(self, policy: str, versions: Collection[int]) -> None:
        """These versions are there at the start."""
        self._opponents.begin(policy, versions)

    def coming(self, policy: str, updates: int) -> Collection[int]:
        """A version is about to be written.

        Returns:
            Versions of the policy that matches under way are played with: not to be removed yet.
        """
        self._opponents.coming(policy, updates)
        sides = [place for place, side in enumerate(self._sides) if side.policy == policy]
        under_way = (lot.players[lot.is_open][:, sides] for lot in self._lots.values())
        return {version for players in under_way for version in players.ravel().tolist()} - {LIVE}

    def written(self, policy: str, updates: int) -> None:
        """A version may be met from now on."""
        self._opponents.written(policy, updates)

    # --- matches -------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        self._time.spent("input")
        self._requests.poll()
        busy = False
        while (message := self._requests.take()) is not None:
            self._take_results(message)
            self._parked.append(message)
            busy = True
        for message in [message for message in self._parked if self._may_deal(message)]:
            self._parked.remove(message)
            self._answer(message)
            busy = True
        if busy:
            self._time.spent("computing")
        return busy

    def _may_deal(self, request: Message) -> bool:
        return self._opponents.are_there(self._groups[request.slot].learner)

    def _answer(self, request: Message) -> None:
        group = self._groups[request.slot]
        message = None if group.actor in self._dead else self._outboxes[request.slot].acquire()
        if message is not None:
            players = self._players(group)
            message.fields["matches"][...] = self._dealt + np.arange(self._lot)
            message.fields["players"][...] = players
            message.header[MatchHeader.GROUP] = request.slot
            message.header[MatchHeader.COUNT] = self._lot
            self._outboxes[request.slot].send(message)
            self._lots[self._dealt] = _Lot(request.slot, players, np.ones(self._lot, np.bool_))
            self._dealt += self._lot
        self._requests.release(request)

    def _players(self, group: MatchGroup) -> IntArray:
        """Who plays the sides of a lot, `[L, S]`."""
        players = np.full((self._lot, len(self._sides)), LIVE, np.int64)
        for side in self._opponents.past_sides(group.learner):
            assert group.learner is not None
            players[:, side] = self._opponents.draw(group.learner, side, group.servers[side], self._lot)
        return players

    def _take_results(self, message: Message) -> None:
        """Counts results of matches that were dealt to the group and have none yet."""
        count = int(message.header[MatchHeader.COUNT])
        matches, returns = message.fields["matches"][:count], message.fields["returns"][:count]
        first = matches - matches % self._lot
        for start in np.unique(first).tolist():
            lot, own = self._lots.get(start), first == start
            if lot is None or lot.group != message.slot:
                continue
            places = matches[own] - start
            counts = lot.is_open[places]
            lot.is_open[places] = False
            self._count(self._groups[lot.group], lot.players[places[counts]], returns[own][counts])
            if not lot.is_open.any():
                del self._lots[start]

    def _count(self, group: MatchGroup, players: IntArray, returns: FloatArray) -> None:
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
        self._lots = {start: lot for start, lot in self._lots.items() if self._groups[lot.group].actor not in new}

    def counters(self) -> dict[str, float]:
        return self._time.counters()

    @property
    def moves(self) -> int:
        return self._dealt

    @property
    def is_done(self) -> bool:
        """It ends with the coordinator."""
        return True

    def waits_for(self) -> str:
        return "waits for the first version of a policy" if self._parked else ""

    def summary(self) -> dict[str, Any]:
        """What `status` says."""
        spent = self._time.counters()
        return {
            "busy": spent["computing_seconds"] / max(spent["seconds"], 1e-9),
            "self_play": self._self_played,
            "past": self._opponents.summary(),
        }

    def results_state(self) -> dict[str, Any]:
        """What every checkpoint has: results, and what is drawn next; matches under way begin anew."""
        return self._opponents.results_state() | {"self_played": self._self_played, "dealt": self._dealt}

    def load_results(self, state: Mapping[str, Any]) -> None:
        """Takes back what `results_state` gave."""
        self._opponents.load_results(state)
        self._self_played, self._dealt = int(state["self_played"]), int(state["dealt"])

    def save_state(self) -> dict[str, Any]:
        """All of it, for serial runs."""
        lots = {
            str(start): {"group": lot.group, "players": lot.players, "is_open": lot.is_open.copy()}
            for start, lot in self._lots.items()
        }
        return {**self.results_state(), **self._opponents.save_state(), "lots": lots}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.load_results(state)
        self._opponents.load_state(state)
        self._lots = {
            int(start): _Lot(int(saved["group"]), np.asarray(saved["players"]), np.array(saved["is_open"], np.bool_))
            for start, saved in state.get("lots", {}).items()
        }

    def close(self) -> None:
        self._requests.close()
