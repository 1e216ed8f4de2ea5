"""MiniGrid and BabyAI (Chevalier-Boisvert et al. 2023, arXiv:2306.13831; 2019, arXiv:1810.08272): rooms of cells.

An agent sees the cells before it, which way it looks, and a mission in words. Success ends an episode with a reward
of 1, less 0.9 times the share of its limit of steps that was used; the limit truncates.
"""

from __future__ import annotations

from typing import Any, ClassVar

from envs._gymnasium_actions import action_codec
from envs._gymnasium_environment import GymnasiumEnvironment, Understood
from envs._gymnasium_making import Recipe, Wrapper
from envs._gymnasium_simulators import Looped
from envs._minigrid_numbers import numbers_of
from envs._old_gym import first_reset
from srlhpc.environment import Environment
from srlhpc.specs.named_modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """A level of MiniGrid or BabyAI."""

    requires: ClassVar[dict[str, str]] = {"minigrid": "minigrid"}

    id: str
    """Its id, for example `MiniGrid-DoorKey-6x6-v0` or `BabyAI-GoToLocal-v0`; `module:Name-v0` imports a module that
    registers one of yours."""
    mission: bool = True
    """Show which words the mission has, in `mission`. Not needed where it is always the same, as in DoorKey."""
    kwargs: dict[str, Any] = {}
    """Further arguments of `gymnasium.make`, for example `{max_steps: 100, agent_view_size: 9}`."""
    wrappers: tuple[Wrapper, ...] = ()
    """Wrappers around each environment, as of the environment `gymnasium`, for example
    `[minigrid.wrappers.FullyObsWrapper]`."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Observations: `image`, uint8 `[21, height, width]`, a plane for each object, colour and state, 255 where a cell has
    it; `direction`, float32 `[4]`, one-hot; `mission`, float32 `[59]`, how often each word is in it.

    Raises:
        UserError: there is no such level, or a wrapper shows something else.
    """
    name = settings.id if ":" in settings.id else f"minigrid:{settings.id}"
    recipe = Recipe(name, settings.kwargs, settings.wrappers, render)
    simulators = [recipe.simulator() for _ in range(num_environments)]
    first, where = simulators[0], recipe.where
    codec = action_codec(first.action_space, where, "MiniGrid's own space has seven choices")
    spaces = Understood(
        numbers_of(first.observation_space, where, mission=settings.mission), codec, mask_in_observation=False
    )
    spaces.observations.check(first_reset(first, seed, where)[0], where)
    return GymnasiumEnvironment(Looped(simulators, *spaces), spaces, num_environments, masked=False)
