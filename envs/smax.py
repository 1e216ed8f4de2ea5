"""SMAX: units fight micro-battles as in StarCraft, without the game (Rutherford et al. 2023, arXiv:2311.10090), by the
package `jaxmarl`. Each ally is an agent; the package's heuristic plays the enemies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import PositiveInt

from srlhpc.environment import (
    Array,
    ArraySpec,
    BoolArray,
    Discrete,
    Environment,
    Episode,
    EpisodeTracker,
    Kind,
    SavedState,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.specs.named_modules import EnvironmentSettings

_KIND = "ally"
_BATTLE = "battle."
_FLAGS = ("first", "valid", "alive", "rewards", "terminated", "truncated")


class Settings(EnvironmentSettings):
    """A scenario and how its enemies play."""

    requires: ClassVar[dict[str, str]] = {"jaxmarl": "smax"}

    scenario: str = "3m"
    """Name of a scenario of the package: `3m`, `2s3z`, `8m`, `5m_vs_6m`, `smacv2_5_units`."""
    attack_mode: Literal["closest", "random"] = "closest"
    """Whom an enemy begins to shoot at, of the units in its range; it goes on until that one is dead."""
    see_enemy_actions: bool = True
    """Whether agents see what visible enemies did last."""
    max_steps: PositiveInt = 100
    """Steps after which a battle is cut (truncated)."""
    kwargs: dict[str, Any] = {}
    """Further arguments of the package's `HeuristicEnemySMAX` and `SMAX`, for example `{walls_cause_death: false}`."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    """Makes the environment.

    Raises:
        UserError: there is no such scenario, or it takes other arguments.
    """
    from envs._smax_making import load_battles

    own = settings.model_dump(include={"attack_mode", "see_enemy_actions", "max_steps"})
    return Smax(load_battles(settings.scenario, settings.kwargs, **own), num_environments, draws=render)


class Smax(Environment):
    """E battles. An agent that dies leaves (terminated), and gets nothing of what its team gets after that.

    A battle ends when a team is dead (terminated), or is cut when its time is up (truncated).

    Args:
        battles: an `envs._smax_battles.Battles`.
        num_environments: E.
        draws: whether `render` does.
    """

    def __init__(self, battles: Any, num_environments: int, *, draws: bool) -> None:
        seen, actions, state = battles.sizes
        kind = Kind(
            _KIND,
            battles.agents,
            {"obs": ArraySpec((seen,), "float32")},
            Discrete(actions),
            has_action_masks=True,
            state=ArraySpec((state,), "float32"),
        )
        self.spaces = Spaces((kind,), battles.frames_per_step)
        self.num_environments = num_environments
        self._battles, self._draws = battles, draws
        self._now = empty_kind_step(kind, num_environments)
        self._moment = battles.blank(num_environments)
        self._episodes = EpisodeTracker(num_environments, battles.agents)

    def reset(self, seed: int) -> Step:
        num, now = self.num_environments, self._now
        keys = np.random.SeedSequence(seed).generate_state(2 * num).reshape(num, 2)
        blank = self._battles.blank(num)._replace(keys=keys)
        self._moment = self._battles.step(blank, np.zeros(now.valid.shape, np.int64), np.ones(num, np.bool_))
        self._episodes.reset()
        now.first[:] = now.valid[:] = now.alive[:] = True
        now.rewards[:] = 0.0
        now.terminated[:] = now.truncated[:] = False
        self._show()
        return Step({_KIND: now})

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, begins, acted = self._now, self._moment.is_over, self._now.valid.copy()
        moment = self._moment = self._battles.step(self._moment, actions[_KIND], begins)
        ended, over = moment.is_over, moment.is_over[:, None]
        allies, enemies = np.split(moment.alive, [acted.shape[1]], axis=1)
        any_ally, any_enemy = allies.any(axis=1), enemies.any(axis=1)
        is_cut = (ended & any_ally & any_enemy)[:, None]
        # The package also rewards the dead.
        now.rewards[:] = np.where(acted, moment.rewards, 0.0)
        now.first[:] = begins[:, None]
        now.truncated[:] = acted & allies & is_cut
        now.terminated[:] = acted & ~now.truncated & (over | ~allies)
        now.valid[:] = allies & ~over
        # Who was there at the end is shown once more.
        now.alive[:] = np.where(over, acted, allies)
        self._show()
        episodes = self._episodes.record(now.rewards, acted, ended)
        won = np.logical_and(any_ally, ~any_enemy)
        return Step({_KIND: now}, [_told(episode, won) for episode in episodes])

    def _show(self) -> None:
        now, moment = self._now, self._moment
        now.observations["obs"], now.action_masks, now.state = moment.observations, moment.masks, moment.state

    def render(self) -> Array | None:
        from envs._smax_drawing import draw

        return draw(self._battles.map, self._battles.units(self._moment.battles)) if self._draws else None

    @property
    def render_fps(self) -> float | None:
        return 1.0 / float(self._battles.seconds)

    def save_state(self) -> SavedState:
        moment, now = self._moment, self._now
        battles = self._battles.to_arrays(moment.battles)
        shown = {name: np.array(getattr(moment, name)) for name in moment._fields if name != "battles"}
        return {
            **{f"{_BATTLE}{name}": array for name, array in battles.items()},
            **{f"moment.{name}": array for name, array in shown.items()},
            **{name: getattr(now, name).copy() for name in _FLAGS},
            **self._episodes.save_state(),
        }

    def load_state(self, state: SavedState) -> Step:
        from envs._smax_battles import Moment

        own = {name.removeprefix(_BATTLE): array for name, array in state.items() if name.startswith(_BATTLE)}
        shown = {name: state[f"moment.{name}"] for name in Moment._fields if name != "battles"}
        self._moment = Moment(battles=self._battles.from_arrays(own), **shown)
        for name in _FLAGS:
            getattr(self._now, name)[:] = state[name]
        self._episodes.load_state(state)
        self._show()
        return Step({_KIND: self._now})


def _told(episode: Episode, won: BoolArray) -> Episode:
    return replace(episode, metrics={"won": float(won[episode.environment])})
