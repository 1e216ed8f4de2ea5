"""Plays all contestants against each other: exactly so many episodes a pairing on either side, with frozen weights.

Letters: n episodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from srlhpc.arena.contestants import Contestant
from srlhpc.arena.sides import Side, are_alike
from srlhpc.data.matches import mean_return
from srlhpc.environment import Environment, Episode
from srlhpc.errors import UserError
from srlhpc.league.payoffs import FloatArray, PayoffTable
from srlhpc.plan.seeds import seed_of
from srlhpc.playing import MOST_ENVIRONMENTS, Progress, built_environment
from srlhpc.ranks.global_generators import seed_generators
from srlhpc.roles.acting.closing import close
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.round import Round
from srlhpc.runs.progress import ProgressLine


@dataclass(frozen=True)
class Conditions:
    """How the episodes are played."""

    episodes: int
    """Episodes of each pairing on either side, exactly."""
    seed: int = 0
    """Changes the episodes."""
    drawn: bool = False
    """Whether actions are drawn, not the most likely ones."""
    most_steps: int | None = None
    """An episode that has not ended after so many steps is given up; None: as the evaluators of the runs do."""


@dataclass(frozen=True)
class Played:
    """What came of it."""

    by_side: PayoffTable
    """Who played the first side against who played the second, episode by episode."""
    games: PayoffTable
    """Everyone against everyone, whichever side each played. A game is an episode where the sides are alike; else one
    episode on either side each, of which the returns are added."""
    alike: bool
    """Whether the sides are."""
    unfinished: int
    """Episodes that were given up."""
    most_steps: int
    """After so many steps."""
    undrawn: tuple[str, ...]
    """Contestants with a policy whose rule says how it acts in evaluation: `Conditions.drawn` does not change it."""


def play(
    contestants: Sequence[Contestant], sides: tuple[Side, Side], conditions: Conditions, line: ProgressLine
) -> Played:
    """Plays every contestant on either side against every other; against itself too, where the sides are not alike.

    Raises:
        UserError: the environment cannot be built, or a side had no agent in an episode.
    """
    plan = contestants[0].plan
    most_steps = conditions.most_steps or max(c.plan.spec.evaluators.max_episode_steps for c in contestants)
    environment = built_environment(
        plan.spec.environment, min(conditions.episodes, MOST_ENVIRONMENTS), seed_of(conditions.seed, "arena")
    )
    torch.set_num_threads(1)
    try:
        return _Stage(environment, contestants, sides, conditions, most_steps, line).play()
    finally:
        close(environment, f"environment {plan.spec.environment.factory}")
        line.clear()


class _Stage:
    """The environment with all players, each made once for each side."""

    def __init__(
        self,
        environment: Environment,
        contestants: Sequence[Contestant],
        sides: tuple[Side, Side],
        conditions: Conditions,
        most_steps: int,
        line: ProgressLine,
    ) -> None:
        self._environment, self._sides, self._conditions = environment, sides, conditions
        self._names = [contestant.name for contestant in contestants]
        self._alike = are_alike(sides, contestants[0].plan)
        self._players = [
            [_players(contestant, side, environment.num_environments, draws=conditions.drawn) for side in sides]
            for contestant in contestants
        ]
        self._undrawn = tuple(
            name
            for name, (first, second) in zip(self._names, self._players, strict=True)
            if any(player.explores for player in (*first, *second))
        )
        self._most_steps, self._progress = most_steps, Progress(line)

    def play(self) -> Played:
        names, alike = self._names, self._alike
        by_side, games = PayoffTable.empty(names, names), PayoffTable.empty(names, names)
        pairings = [
            (row, column) for row in range(len(names)) for column in range(len(names)) if not alike or row != column
        ]
        unfinished, returns = 0, {}
        for number, (row, column) in enumerate(pairings, 1):
            played = self._round(row, column)
            while not played.is_done:
                played.advance()
                self._progress.show(played, f"pairing {number} of {len(pairings)}")
            unfinished += played.unfinished
            returns[row, column] = self._returns(played.episodes, self._environment.num_environments)
            by_side.add(names[row], names[column], np.concatenate(returns[row, column]))
        if alike:
            return Played(by_side, by_side.without_sides(), alike, unfinished, self._most_steps, self._undrawn)
        for row, column in itertools.combinations(range(len(names)), 2):
            games.add(names[row], names[column], _both_sides(returns[row, column], returns[column, row]))
        return Played(by_side, games.without_sides(), alike, unfinished, self._most_steps, self._undrawn)

    def _round(self, row: int, column: int) -> Round:
        # Two episodes that are added up begin alike, so that neither has the better start; episodes that count one by
        # one do not, since they must not depend on each other.
        places = (row, column) if self._alike else (min(row, column), max(row, column))
        seed = seed_of(self._conditions.seed, "arena", *places)
        seed_generators(seed)
        players = [*self._players[row][0], *self._players[column][1]]
        return Round(self._environment, players, self._conditions.episodes, seed, self._most_steps)

    def _returns(self, episodes: Sequence[Episode], num_environments: int) -> list[FloatArray]:
        """Returns of both sides, `[n, 2]`, by environment and in the order of their ends there."""
        by_environment: list[list[list[float]]] = [[] for _ in range(num_environments)]
        for episode in episodes:
            by_environment[episode.environment].append([_return(episode, side) for side in self._sides])
        return [np.array(rows, np.float64).reshape(-1, 2) for rows in by_environment]


def _players(contestant: Contestant, side: Side, num_environments: int, *, draws: bool) -> list[Player]:
    """The contestant's policies on their agents of a side."""
    plan, players = contestant.plan, []
    for seat in plan.whole_seats:
        agents = plan.spaces.kind(seat.kind).agents
        if places := [place for place in seat.agents if agents[place] in side.agents]:
            policy = contestant.policies[seat.policy]
            exploration = plan.spec.policies[seat.policy].algorithm.explore_in_evaluation()
            players.append(Player(policy, seat.kind, places, num_environments, exploration=exploration, draws=draws))
    return players


def _return(episode: Episode, side: Side) -> float:
    """Mean over the agents of a side that were in the game."""
    found = mean_return(episode.returns, side.agents)
    if math.isnan(found):
        raise UserError(
            f"side {side.name}: none of its agents ({', '.join(side.agents)}) was in the game in an episode, so nobody "
            "won it; the arena needs both sides in every episode"
        )
    return found


def _both_sides(there: Sequence[FloatArray], back: Sequence[FloatArray]) -> FloatArray:
    """Returns `[n, 2]` of two contestants over two episodes each: one as in `there`, and one with sides changed."""
    # Where episodes were given up, an environment may have ended more of them with one arrangement than with the other.
    pairs = [(one[: len(other)], other[: len(one)]) for one, other in zip(there, back, strict=True)]
    return np.concatenate([one + other[:, ::-1] for one, other in pairs])
