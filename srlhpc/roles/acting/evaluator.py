"""The evaluator: plays an exact number of episodes with deterministic actions and frozen weights, round by round."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from srlhpc.comm.parameters import ParameterSubscription
from srlhpc.comm.protocol import Command, Report
from srlhpc.environment import BoolArray, Environment, Episode, Step, zero_actions
from srlhpc.policies.policy import read_vector
from srlhpc.roles.acting.closing import close
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.step_check import StepCheck
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import TimeUse

log = logging.getLogger(__name__)


class Round:
    """Plays exactly `episodes` episodes: each environment plays a fixed share, so that short episodes are not
    preferred.

    An environment whose episode has not ended after `most_steps` steps plays no more; what it still had to play is
    unfinished.
    """

    def __init__(
        self,
        environment: Environment,
        players: Sequence[Player],
        episodes: int,
        seed: int,
        most_steps: float = math.inf,
    ) -> None:
        self._environment, self._players, self._most_steps = environment, players, most_steps
        for place, player in enumerate(players):
            player.seed(seed + place)
        share, rest = divmod(episodes, environment.num_environments)
        self._quota = np.array([share + (env < rest) for env in range(environment.num_environments)])
        self.wanted = episodes
        """Episodes that were to be played."""
        self._taken = np.zeros(environment.num_environments, np.int64)
        """Steps of each environment's episode."""
        self.steps = 0
        """Steps of all environments together."""
        self.unfinished = 0
        """Episodes that were given up."""
        self.episodes: list[Episode] = []
        self._check = StepCheck(environment.spaces, environment.num_environments)
        self._step: Step = environment.reset(seed)
        self._check(self._step)
        self._actions = zero_actions(environment.spaces, environment.num_environments)

    @property
    def is_done(self) -> bool:
        return not self._quota.any()

    @property
    def step(self) -> Step:
        """What is shown now; its arrays may be those of the step before."""
        return self._step

    @property
    def playing(self) -> BoolArray:
        """`[E]`: environments whose episode counts."""
        return self._quota > 0

    @property
    def longest(self) -> int:
        """Steps so far of the longest episode that is being played."""
        return int(self._taken.max(where=self._quota > 0, initial=0))

    def advance(self) -> None:
        """Plays one step in all environments."""
        for player in self._players:
            player.act(self._step.kinds[player.kind], self._actions[player.kind])
        self._step = self._environment.step(self._actions)
        self._check(self._step)
        self.steps += len(self._quota)
        self._taken += 1
        for episode in self._step.episodes:
            # The next step only starts the next episode.
            self._taken[episode.environment] = -1
            if self._quota[episode.environment] > 0:
                self._quota[episode.environment] -= 1
                self.episodes.append(episode)
        endless = self._taken >= self._most_steps
        if np.count_nonzero(endless):
            self.unfinished += int(self._quota[endless].sum())
            self._quota[endless] = 0


class Evaluator(Role):
    """Starts a round whenever the first policy has moved on by so many updates."""

    def __init__(
        self,
        label: str,
        environment: Environment,
        players: Mapping[str, Player],
        subscriptions: Mapping[str, ParameterSubscription],
        *,
        episodes: int,
        every_updates: int,
        seed: Callable[[int], int],
        episode_summary: Callable[[Episode], dict[str, Any]],
        around: Callable[[int], AbstractContextManager[None]] | None = None,
        most_steps: float = math.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`seed(version)` gives the seed of the round at that version of the first policy; played in `around(seed)`.

        Episodes of more than `most_steps` steps are given up; such a round has no mean return.
        """
        self.label = label
        self._environment, self._players, self._subscriptions = environment, players, subscriptions
        self._episodes, self._every, self._seed, self._summary = episodes, every_updates, seed, episode_summary
        self._around_round, self._most_steps = around, most_steps
        self._around: AbstractContextManager[None] = nullcontext()
        self._time = TimeUse(clock)
        self._round: Round | None = None
        self._version = self._version_before = -1
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
            self._end(self._round)
        self._time.spent("computing")
        return True

    def _begin(self) -> bool:
        versions = [subscription.version for subscription in self._subscriptions.values()]
        if min(versions) < 0 or (self._version >= 0 and versions[0] < self._version + self._every):
            return False
        for name, subscription in self._subscriptions.items():
            read_vector(self._players[name].policy, subscription.vector)
        self._version_before, self._version = self._version, versions[0]
        players, seed = list(self._players.values()), self._seed(self._version)
        if self._around_round is not None:
            self._around = self._around_round(seed)
        with self._around:
            self._round = Round(self._environment, players, self._episodes, seed, self._most_steps)
        return True

    def _end(self, played: Round) -> None:
        summaries = [self._summary(episode) for episode in played.episodes]
        returns = [summary["return"] for summary in summaries if summary["return"] is not None]
        if played.unfinished:
            # Those that ended may be the short ones only: their mean would compare with no other.
            returns = []
            log.warning(
                "evaluation of version %d: %d of %d episodes ended; one had not after %d steps; raise "
                "evaluators.max_episode_steps, or let the environment end its episodes",
                self._version,
                len(summaries),
                self._episodes,
                self._most_steps,
            )
        self._finished.append(
            {
                "version": self._version,
                "episodes": len(summaries),
                "unfinished": played.unfinished,
                "return_mean": float(np.mean(returns)) if returns else None,
                "return_std": float(np.std(returns)) if returns else None,
                "length_mean": float(np.mean([summary["steps"] for summary in summaries])) if summaries else None,
            }
        )
        self._rounds += 1
        self._round = None

    def obey(self, command: Command) -> None:
        self._stopping |= command.stop

    def fill(self, report: Report) -> None:
        report.evaluations.extend(self._finished)
        self._finished.clear()

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
        """Which version the last round was of; called after `start_over`."""
        return {"version": self._version}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._version = int(state["version"])

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
