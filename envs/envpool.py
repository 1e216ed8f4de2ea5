"""EnvPool's environments by their ids: Atari, MuJoCo, classic control, ViZDoom and more, all stepped in C++.

EnvPool resets an environment on the step after its end, as the contract does. It saves no states.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import PositiveInt

from envs._envpool_atari import AtariPool
from envs._envpool_pools import Pool, PoolRecipe
from envs._gymnasium_environment import from_vector, understood
from srlhpc.environment import Environment
from srlhpc.specs.named_modules import EnvironmentSettings

_REMEDY = "EnvPool's environments take no wrappers, so choose another id"


class Settings(EnvironmentSettings):
    """An environment of EnvPool."""

    requires: ClassVar[dict[str, str]] = {"envpool": "envpool"}

    id: str
    """EnvPool's id, for example `Pong-v5`, `HalfCheetah-v5` or `CheetahRun-v1`."""
    kwargs: dict[str, Any] = {}
    """Options of that id, as of `envpool.make_gymnasium`: `max_episode_steps`, and of Atari for example
    `repeat_action_probability`, `episodic_life` or `reward_clip`."""
    num_threads: PositiveInt = 1
    """Threads that step the environments of a group; more than one where a rank has more cores."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: the id or an option is not known, EnvPool cannot make it, or its spaces are not understood.
    """
    recipe = PoolRecipe(settings.id, settings.kwargs, num_environments, settings.num_threads, render)
    recipe.check()
    pool = Pool(recipe, seed)
    if recipe.is_atari:
        return AtariPool(pool, num_environments)
    spaces = understood(pool.single_observation_space, pool.single_action_space, recipe.where, _REMEDY, _REMEDY)
    # Masks come in observations, or not at all.
    return from_vector(pool, num_environments, spaces, {})
