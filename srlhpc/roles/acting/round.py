"""An exact number of episodes with deterministic actions and frozen weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from srlhpc.environment import BoolArray, Environment, Episode, Step, zero_actions
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.step_check import StepCheck


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
