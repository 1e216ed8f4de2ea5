"""The matchmaker: deals matches to groups, and takes in what came of them. Beside the coordinator, free of torch.

    request (results of decided matches) --(versions are there)--> lot of matches --> request ...

A match is one episode of one environment. In a group that learns against the past one side plays as it is now, and
every other is played by a version; in one that measures payoffs versions play all sides. Letters: L matches of a lot,
S sides.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.comm.protocol import MatchHeader
from srlhpc.data.matches import LIVE
from srlhpc.league.payoffs import FloatArray, IntArray
from srlhpc.roles.matchmaking.lots import Lots
from srlhpc.roles.matchmaking.opponents import MatchSide, Opponents
from srlhpc.roles.matchmaking.payoff_games import Pairing, PayoffGames
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import TimeUse

log = logging.getLogger(__name__)

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
        environments: of a group.
        resident: pairings of versions that a lot has at most.
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
        environments: int = 1,
        resident: int = 1,
        payoffs: PayoffGames | None = None,
        requests: Inbox,
        outboxes: Mapping[int, Outbox],
    ) -> None:
        self._sides, self._groups, self._opponents, self._lot = sides, groups, opponents, lot
        self._environments, self._resident, self._payoffs = environments, resident, payoffs
        self._requests, self._outboxes = requests, outboxes
        self._lots = Lots(lot, [number for number, group in enumerate(groups) if group.measures])
        self._missing: Mapping[Pairing, int] = {}
        """Games of versions that nobody plays yet, as of the last time that something changed."""
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
            self._payoffs.begin(policy, versions)
        self._changed = True

    def coming(self, policy: str, updates: int) -> Collection[int]:
        """A version is about to be written.

        Returns:
            Versions of the policy that matches under way are played with: not to be removed yet.
        """
        sides = [place for place, side in enumerate(self._sides) if side.policy == policy]
        return {*self._opponents.coming(policy, updates), *self._lots.versions(sides)}

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
        if self._changed:
            self._changed = False
            busy |= self._answer_parked()
        if busy:
            self._time.spent("computing")
        return busy

    def _answer_parked(self) -> bool:
        """Deals to all groups that can go on."""
        self._look_for_missing()
        busy = False
        for message in list(self._parked):
            if self._may_deal(message):
                self._parked.remove(message)
                self._answer(message)
                busy = True
        return busy

    def _may_deal(self, request: Message) -> bool:
        group = self._groups[request.slot]
        if not group.measures:
            return self._opponents.are_there(group.learner)
        # A group stands still while one of its environments has no match: it goes on until all that counts is played.
        return self._lots.has(request.slot) or bool(self._missing)

    def _look_for_missing(self) -> None:
        if self._payoffs is not None:
            self._missing = self._payoffs.missing(self._lots.under_way)

    def _answer(self, request: Message) -> None:
        group = self._groups[request.slot]
        message = None if group.actor in self._dead else self._outboxes[request.slot].acquire()
        if message is not None:
            players, counting, count = self._measured() if group.measures else self._players(group)
            message.fields["matches"][...] = self._lots.deal(request.slot, players, counting)
            message.fields["players"][...] = players
            message.header[MatchHeader.GROUP] = request.slot
            message.header[MatchHeader.COUNT] = count
            self._outboxes[request.slot].send(message)
            if group.measures:
                self._look_for_missing()
        self._requests.release(request)

    def _players(self, group: MatchGroup) -> tuple[IntArray, int, int]:
        """Who plays the sides of a lot, `[L, S]`, how many of its matches count, and how many are dealt: all."""
        players = np.full((self._lot, len(self._sides)), LIVE, np.int64)
        for side in self._opponents.past_sides(group.learner):
            assert group.learner is not None
            players[:, side] = self._opponents.draw(group.learner, side, group.servers[side], self._lot)
        return players, self._lot, self._lot

    def _measured(self) -> tuple[IntArray, int, int]:
        """Who plays the sides of a lot of versions, `[L, S]`, how many of its games count, and how many are dealt.

        The first ones count. What is beyond them keeps a group going, whose environments move together.
        """
        assert self._payoffs is not None
        players = np.empty((self._lot, len(self._sides)), np.int64)
        counting = 0
        for pairing, games in list(self._missing.items())[: self._resident]:
            end = min(counting + games, self._lot)
            players[counting:end] = pairing
            counting = end
        players[counting:] = self._payoffs.filler
        return players, counting, max(counting, min(self._environments, self._lot))

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
        counts = {"sides": self._side_names(), "self_played": self._self_played, "dealt": self._lots.dealt}
        return self._opponents.results_state() | counts | payoffs

    def _side_names(self) -> str:
        return json.dumps([side.name for side in self._sides])

    def load_results(self, state: Mapping[str, Any]) -> None:
        """Takes back what `results_state` gave; what other sides did says nothing of these, and is left out."""
        if state.get("sides", self._side_names()) != self._side_names():
            log.warning(
                "the checkpoint has results of matches of other sides (%s); results begin anew with %s",
                ", ".join(json.loads(state["sides"])),
                ", ".join(side.name for side in self._sides),
            )
            self._lots.dealt = int(state["dealt"])
            return
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
