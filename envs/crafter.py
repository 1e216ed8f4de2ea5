"""Crafter (Hafner 2021, arXiv:2109.06780): an open world from the screen, to survive in and to unlock 22 achievements.

The authors' package steps it, slowly: some hundred steps a second, and most of a second for each new world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, PositiveInt

from envs._crafter_worlds import ACHIEVEMENTS, ACTIONS, simulator
from envs._crafter_worlds import seed as set_seed
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, ArraySpec, Discrete, Environment, Episode, Spaces, Step
from srlhpc.specs.named_modules import EnvironmentSettings, Panel

_VIEW = 9
"""Cells across the picture."""
_ENLARGED = 8
"""Height and width of a pixel in a film."""
_PREFIX = "achievement_"


class Settings(EnvironmentSettings):
    """The size of the world and of what is seen."""

    requires: ClassVar[dict[str, str]] = {"crafter": "crafter"}

    area: tuple[Annotated[int, Field(ge=_VIEW)], Annotated[int, Field(ge=_VIEW)]] = (64, 64)
    """Cells of the world, across and down."""
    pixels: Annotated[int, Field(ge=_VIEW)] = 64
    """Height and width of the picture."""
    max_steps: PositiveInt = 10_000
    """Steps after which an episode is cut (truncated)."""

    def spaces(self) -> Spaces:
        return single_agent_spaces({"obs": ArraySpec((3, self.pixels, self.pixels), "uint8")}, Discrete(ACTIONS))

    def statistics(self) -> Sequence[Panel]:
        names = {
            kind: [name for name in ACHIEVEMENTS if name.startswith(kind)] for kind in ("collect", "make", "place")
        }
        rest = [name for name in ACHIEVEMENTS if not any(name in others for others in names.values())]
        return [
            Panel(title, "share of episodes", {_PREFIX + name: name.replace("_", " ") for name in shown})
            for title, shown in zip(("Collected", "Made", "Placed", "Survived"), [*names.values(), rest], strict=True)
        ]


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    return Crafter(settings, num_environments, seed, render)


class Crafter(Environment):
    """E worlds of one kind.

    Observation: `obs`, uint8 `[3, pixels, pixels]`. A step that unlocks achievements for the first time in an episode
    is rewarded by 1, a point of health by 0.1. Death terminates. Metrics of an episode: `achievement_NAME`, whether it
    was unlocked, so that their means are the success rates.
    """

    def __init__(self, settings: Settings, num_environments: int, seed: int, render: bool) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        self._draws = render
        self._worlds = [simulator(settings.area, settings.pixels, settings.max_steps) for _ in range(num_environments)]
        self._records = SingleAgentRecords(self.spaces, num_environments)
        self._unlocked: list[Mapping[str, float]] = [{}] * num_environments
        """Metrics of the last episode that ended."""
        self._seed(seed)

    def _seed(self, seed: int) -> None:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments) >> 1
        for world, own_seed in zip(self._worlds, seeds.tolist(), strict=True):
            set_seed(world, own_seed)

    def reset(self, seed: int) -> Step:
        self._seed(seed)
        for env in range(self.num_environments):
            self._begin(env)
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, ended = self._records.now, self._records.ended.tolist()
        chosen = actions[AGENT][:, 0].tolist()
        outcomes = [self._begin(env) if is_over else self._act(env, chosen[env]) for env, is_over in enumerate(ended)]
        now.rewards[:, 0], now.terminated[:, 0], now.truncated[:, 0] = zip(*outcomes, strict=True)
        step = self._records.finish()
        return Step(step.kinds, [self._with_achievements(episode) for episode in step.episodes])

    def _begin(self, env: int) -> tuple[float, bool, bool]:
        self._show(env, self._worlds[env].reset())
        return 0.0, False, False

    def _act(self, env: int, action: int) -> tuple[float, bool, bool]:
        picture, reward, is_over, told = self._worlds[env].step(action)
        self._show(env, picture)
        if is_over:
            self._unlocked[env] = {_PREFIX + name: float(count > 0) for name, count in told["achievements"].items()}
        is_dead = told["discount"] == 0
        return reward, is_over and is_dead, is_over and not is_dead

    def _show(self, env: int, picture: Array) -> None:
        self._records.now.observations["obs"][env, 0] = picture.transpose(2, 0, 1)

    def _with_achievements(self, episode: Episode) -> Episode:
        return replace(episode, metrics=self._unlocked[episode.environment])

    def render(self) -> Array | None:
        # What the package draws at night takes random numbers of its world, so it must not be asked again.
        if not self._draws:
            return None
        picture: Array = self._records.now.observations["obs"][0, 0].transpose(1, 2, 0)
        return picture.repeat(_ENLARGED, axis=0).repeat(_ENLARGED, axis=1)


def score(statistics: Mapping[str, float]) -> float:
    """The paper's score of an agent: exp(mean of ln(1 + rate)) - 1 over the success rates in percent, 0 to 100.

    A geometric mean, so that rare achievements count.

    Args:
        statistics: means over episodes, as `srlhpc eval --json` tells them, with all 22 `achievement_NAME`, 0 to 1.
    """
    rates = [100 * statistics[_PREFIX + name] for name in ACHIEVEMENTS]
    return float(np.expm1(np.log1p(rates).mean()))
