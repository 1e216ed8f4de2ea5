"""Food for hiders (not part of the published results): sites with helpings, and who eats.

Letters: E environments, H hiders, F food sites.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.hide_and_seek.layout import Layout
from envs.hide_and_seek.settings import Food
from srlhpc.environment import BoolArray, SavedState

Floats = NDArray[np.float64]


class Eaten(NamedTuple):
    """One step's meals."""

    by_hider: Floats
    """`[E, H]`, helpings."""
    health: Floats
    """`[E, F]`, helpings that are left."""


def eat(eats: BoolArray, health: Floats) -> Eaten:
    """Every eating hider takes one helping; where fewer are left they are shared evenly.

    Args:
        eats: `[E, H, F]`.
        health: `[E, F]`, helpings that there are.
    """
    mouths = eats.sum(axis=1)
    helping = np.minimum(1.0, health / np.maximum(mouths, 1))
    portions = eats * helping[:, None]
    return Eaten(portions.sum(axis=2), health - mouths * helping)


class Meals:
    """Food of all environments.

    Attributes:
        sites: `[E, F, 3]`.
        health: `[E, F]`, helpings that are left.
    """

    def __init__(self, num_environments: int, food: Food | None) -> None:
        sites = food.sites if food else 0
        self._food = food
        self.sites: Floats = np.zeros((num_environments, sites, 3))
        self.health: Floats = np.zeros((num_environments, sites))
        self._empty_steps: Floats = np.zeros((num_environments, sites))
        self._eaten: Floats = np.zeros(num_environments)

    def enter(self, env: int, layout: Layout) -> None:
        """Takes over the sites of a new world in an environment, all full."""
        self.sites[env] = layout.food
        self.health[env] = self._food.health if self._food else 0.0
        self._empty_steps[env] = self._eaten[env] = 0.0

    def step(self, hiders: Floats, saw: BoolArray, may_eat: BoolArray) -> Floats:
        """Lets hiders eat after a step.

        Args:
            hiders: `[E, H, 3]`, their centres.
            saw: `[E, H, F]`, whether a hider saw the site before the step.
            may_eat: `[E]`, whether hiders of the environment eat at all.

        Returns:
            Rewards of food, `[E, H]`, not yet averaged over the team.
        """
        food = self._food
        assert food is not None
        near = np.linalg.norm(hiders[:, :, None] - self.sites[:, None], axis=-1) < food.radius
        eaten = eat(near & saw & may_eat[:, None, None] & (self.health > 0.0)[:, None], self.health)
        self.health = eaten.health
        self._eaten += eaten.by_hider.sum(axis=1)
        if food.respawn_steps:
            self._empty_steps = np.where(self.health > 0.0, 0.0, self._empty_steps + 1.0)
            is_back = self._empty_steps > food.respawn_steps
            self.health[is_back] = food.health
            self._empty_steps[is_back] = 0.0
        return eaten.by_hider * food.reward

    def of(self, env: int) -> dict[str, float]:
        """Statistics of an episode."""
        return {"food_eaten": float(self._eaten[env])} if self._food else {}

    def save_state(self) -> SavedState:
        return {
            "food_sites": self.sites.copy(),
            "food_health": self.health.copy(),
            "food_empty_steps": self._empty_steps.copy(),
            "food_eaten": self._eaten.copy(),
        }

    def load_state(self, state: SavedState) -> None:
        self.sites[:] = state["food_sites"]
        self.health = state["food_health"].copy()
        self._empty_steps = state["food_empty_steps"].copy()
        self._eaten[:] = state["food_eaten"]
