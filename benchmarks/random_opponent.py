"""A run's policies against players who choose at random: wins, draws and losses of each seat.

    python benchmarks/random_opponent.py runs/tic_tac_toe-1 --episodes 1000

In each line one seat is played by the run, with its most probable actions, and all others choose uniformly among the
allowed actions. The first line is random play of all seats. `--json` prints a list instead of a table.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from srlhpc.environment import Array, KindStep
from srlhpc.playing import Stage, staged
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.round import Round
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine

EPISODES = 1000


class RandomOpponent:
    """Chooses for some agents of a kind, whatever was chosen for them before; discrete actions with masks."""

    def __init__(self, kind: str, agents: Sequence[int]) -> None:
        self.kind, self._agents = kind, list(agents)
        self.seed(0)

    def seed(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def act(self, step: KindStep, actions: Array) -> None:
        assert step.action_masks is not None
        masks = step.action_masks[:, self._agents]
        actions[:, self._agents] = (self._random.random(masks.shape) * masks).argmax(axis=-1)


def played(stage: Stage, seat: str | None, episodes: int, seed: int) -> dict[str, Any]:
    """How it goes for a seat that the run plays while others play at random, or for the first if all do."""
    (kind,) = stage.plan.spaces.kinds
    others = [place for place, agent in enumerate(kind.agents) if agent != seat]
    players = [*stage.players.values(), cast(Player, RandomOpponent(kind.name, others))]
    games = Round(stage.environment, players, episodes, seed)
    while not games.is_done:
        games.advance()
    mine = np.array([episode.returns[seat or kind.agents[0]] for episode in games.episodes])
    return {
        "seat": seat or "all at random",
        "wins": float((mine > 0).mean()),
        "draws": float((mine == 0).mean()),
        "losses": float((mine < 0).mean()),
        "return": float(mine.mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("--episodes", type=int, default=EPISODES, help="episodes of each line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with staged(
        RunPaths(options.run), options.episodes, None, None, options.seed, ProgressLine(io.StringIO())
    ) as stage:
        seats = [None, *stage.plan.spaces.kinds[0].agents]
        lines = [played(stage, seat, options.episodes, options.seed) for seat in seats]
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'seat':14}{'wins':>8}{'draws':>8}{'losses':>8}{'return':>9}")
    for line in lines:
        print(f"{line['seat']:14}{line['wins']:8.3f}{line['draws']:8.3f}{line['losses']:8.3f}{line['return']:9.3f}")


if __name__ == "__main__":
    main()
