"""The evaluator: plays an exact number of episodes with deterministic actions and frozen weights, round by round."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from srlhpc.comm.parameters import ParameterSubscription
from srlhpc.comm.protocol import TEXT_BYTES, Command, Report, move_events
from srlhpc.environment import Environment, Episode
from srlhpc.policies.policy import read_vector
from srlhpc.roles.acting.closing import close
from srlhpc.roles.acting.matchups import Matchups, Pairing
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.round import Round
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import TimeUse

log = logging.getLogger(__name__)

PAIRINGS_BYTES = TEXT_BYTES // 4
"""Bytes of a report for pairings; the rest waits for the next."""


class Evaluator(Role):
    """Starts a round whenever the first policy has moved on by so many updates.

    A round is so many episodes; with `matchups` so many of each of its pairings.
    """

    def __init__(
        self,
        label: str,
        environment: Environment,
        players: Mapping[str, Player],
        subscriptions: Mapping[str, ParameterSubscription],
        *,
        episodes: int,
        every_updates: int,
        seed: Callable[..., int],
        episode_summary: Callable[[Episode], dict[str, Any]],
        around: Callable[[int], AbstractContextManager[None]] | None = None,
        matchups: Matchups | None = None,
        most_steps: float = math.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`seed(version)` gives the seed of the round at that version of the first policy, `seed(version, number)` that
        of one of its pairings; they are played in `around(seed)`. `players` are what is live.

        Episodes of more than `most_steps` steps are given up; such a round has no mean return.
        """
        self.label = label
        self._environment, self._players, self._subscriptions = environment, players, subscriptions
        self._episodes, self._every, self._seed, self._summary = episodes, every_updates, seed, episode_summary
        self._around_round, self._most_steps = around, most_steps
        self._around: AbstractContextManager[None] = nullcontext()
        self._time = TimeUse(clock)
        self._matchups = matchups
        self._left: deque[Pairing] = deque()
        """Pairings of the round that are not begun."""
        self._pairing: Pairing | None = None
        self._begun = 0
        """Pairings of the round that were begun."""
        self._rows: dict[Pairing, dict[str, Any]] = {}
        """What came of the pairings that are played."""
        self._untold: deque[dict[str, Any]] = deque()
        """The same of rounds that have ended, until it is reported."""
        self._summaries: list[dict[str, Any]] = []
        self._unfinished = self._wanted = 0
        self._round: Round | None = None
        self._version = self._version_before = -1
        self._versions: dict[str, int] = {}
        """What was read of each policy when the round began."""
        self._finished: list[dict[str, Any]] = []
        self._rounds = 0
        self._steps = 0
        self._stopping = False

    def poll(self) -> bool:
        for subscription in self._subscriptions.values():
            subscription.poll()
        if self._stopping:
            return False
        if self._round is None:
            self._time.spent("input")
            return self._begin()
        with self._around:
            self._round.advance()
        self._steps += self._environment.num_environments
        if self._round.is_done:
            self._take(self._round)
        self._time.spent("computing")
        return True

    def _begin(self) -> bool:
        versions = [subscription.version for subscription in self._subscriptions.values()]
        if min(versions) < 0 or (self._version >= 0 and versions[0] < self._version + self._every):
            return False
        for name, subscription in self._subscriptions.items():
            read_vector(self._players[name].policy, subscription.vector)
        self._versions = dict(zip(self._subscriptions, versions, strict=True))
        self._version_before, self._version = self._version, versions[0]
        self._rows, self._summaries, self._unfinished, self._wanted, self._begun = {}, [], 0, 0, 0
        if self._matchups is None:
            self._play(list(self._players.values()), self._seed(self._version))
        else:
            self._left = deque(self._matchups.pairings(self._versions))
            self._go_on(self._matchups)
        return True

    def _play(self, players: Sequence[Player], seed: int) -> None:
        if self._around_round is not None:
            self._around = self._around_round(seed)
        with self._around:
            self._round = Round(self._environment, players, self._episodes, seed, self._most_steps)

    def _go_on(self, matchups: Matchups) -> None:
        """Begins the next pairing whose versions are there still, or ends the round."""
        live = {name: player.policy for name, player in self._players.items()}
        while self._left:
            self._pairing = self._left.popleft()
            self._begun += 1
            if (players := matchups.players(self._pairing, live)) is not None:
                self._play(players, self._seed(self._version, self._begun))
                return
        self._end()

    def _take(self, played: Round) -> None:
        """All episodes of a round or of a pairing are played."""
        self._summaries += [self._summary(episode) for episode in played.episodes]
        self._unfinished += played.unfinished
        self._wanted += played.wanted
        self._round = None
        if self._matchups is None or self._pairing is None:
            self._end()
            return
        self._rows[self._pairing] = self._matchups.row(self._pairing, played, self._versions)
        self._go_on(self._matchups)

    def _end(self) -> None:
        summaries = self._summaries
        if self._matchups is not None:
            self._matchups.decide(self._rows)
            if not self._rows:
                return
            self._untold.extend({"version": self._version, **row} for row in self._rows.values())
        returns = [summary["return"] for summary in summaries if summary["return"] is not None]
        if self._unfinished:
            # Those that ended may be the short ones only: their mean would compare with no other.
            returns = []
            log.warning(
                "evaluation of version %d: %d of %d episodes ended; one had not after %d steps; raise "
                "evaluators.max_episode_steps, or let the environment end its episodes",
                self._version,
                len(summaries),
                self._wanted,
                self._most_steps,
            )
        self._finished.append(
            {
                "version": self._version,
                "episodes": len(summaries),
                "unfinished": self._unfinished,
                "return_mean": float(np.mean(returns)) if returns else None,
                "return_std": float(np.std(returns)) if returns else None,
                "length_mean": float(np.mean([summary["steps"] for summary in summaries])) if summaries else None,
                **({} if self._matchups is None else {"win_rate": self._matchups.win_rate(self._rows)}),
            }
        )
        self._rounds += 1
        self._round = None

    def obey(self, command: Command) -> None:
        self._stopping |= command.stop

    def fill(self, report: Report) -> None:
        move_events(self._untold, report.pairings, PAIRINGS_BYTES)
        if not self._untold:
            report.evaluations.extend(self._finished)
            self._finished.clear()

    @property
    def has_news(self) -> bool:
        return bool(self._untold)

    def counters(self) -> dict[str, float]:
        return {"steps_evaluated": self._steps, "rounds": self._rounds, **self._time.counters()}

    @property
    def moves(self) -> int:
        return self._steps

    def start_over(self) -> None:
        """A round that is under way is left, and the next begins as if it had never begun."""
        if self._round is not None:
            self._round, self._version = None, self._version_before

    def save_state(self) -> dict[str, Any]:
        """Which version the last round was of, and which pairings are decided; called after `start_over`."""
        decided = {} if self._matchups is None else {"matchups": self._matchups.save_state()}
        return {"version": self._version, **decided}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._version = int(state["version"])
        if self._matchups is not None:
            self._matchups.load_state(state["matchups"])

    def waits_for(self) -> str:
        return "" if self._round is not None else "waits for newer parameters"

    @property
    def is_done(self) -> bool:
        return self._stopping

    def close_environments(self) -> None:
        close(self._environment, self.label)

    def close(self) -> None:
        self.close_environments()
        for subscription in self._subscriptions.values():
            subscription.close()
