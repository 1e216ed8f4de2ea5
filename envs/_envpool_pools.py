"""Pools of EnvPool's environments: which options they take, and how a seed starts them anew."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs._gymnasium_making import require_limit_of_steps
from envs._near_names import near_names
from srlhpc.environment import Array
from srlhpc.errors import UserError, did_you_mean

_ELSEWHERE = {
    "num_envs": "actors.environments says how many environments are stepped as one vector",
    "batch_size": "all environments of a group are stepped at once; actors.ring hides their time behind inference",
    "num_threads": "it is a setting of its own, environment.num_threads",
    "seed": "seeds follow from the job's seed",
    "env_seed": "seeds follow from the job's seed",
    "max_num_players": "one agent plays each environment",
    "render_mode": "`srlhpc eval --video` sets it",
    "render_env_id": "the first environment is drawn",
    "gym_reset_return_info": "resets always tell it",
    "base_path": "EnvPool knows where its files are",
}
"""Options that are set in another way, and how."""
_OF_PICTURES = ("from_pixels", "render_width", "render_height", "render_camera_id")
"""Options that every id takes beside its own; EnvPool says itself where they do not fit."""
_AT_LEAST_ONE = ("noop_max", "stack_num", "frame_skip", "frame_stack", "img_height", "img_width")
"""Options that crash EnvPool where they are below 1."""
_NO_LIMIT = 2**31 - 1
_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class PoolRecipe:
    """How the pools of one group are made."""

    id: str
    kwargs: Mapping[str, Any]
    num_environments: int
    num_threads: int
    render: bool = False

    @property
    def where(self) -> str:
        return f"environment '{self.id}'"

    @property
    def is_atari(self) -> bool:
        from envpool.registration import registry

        return bool(registry.specs[self.id][0] == "envpool.atari")

    def check(self) -> None:
        """Raises UserError where the id or an option is not known or does not fit, or several agents play."""
        import envpool

        if self.id not in (known := envpool.list_all_envs()):
            near = " or ".join(repr(name) for name in near_names(self.id, known))
            advice = f"did you mean {near}?" if near else "envpool.list_all_envs() names those that there are"
            raise UserError(f"EnvPool knows no environment '{self.id}'; {advice}")
        defaults = self._call(envpool.make_spec).config._asdict()
        for name, value in self.kwargs.items():
            self._check_option(name, value, defaults)
        if (players := defaults["max_num_players"]) > 1:
            raise UserError(
                f"{self.where} is played by {players} agents at once; here one agent plays each environment"
            )

    def _check_option(self, name: str, value: Any, defaults: Mapping[str, Any]) -> None:
        place = f"environment.kwargs.{name}"
        if name in _ELSEWHERE:
            raise UserError(f"{place}: {_ELSEWHERE[name]}")
        if name in _OF_PICTURES:
            return
        if name not in defaults:
            known = [option for option in defaults if option not in _ELSEWHERE]
            raise UserError(f"{place}: '{self.id}' has no such option{did_you_mean(name, known)}")
        if name == "max_episode_steps":
            require_limit_of_steps(value)
            return
        wanted = type(defaults[name])
        fits = type(value) is wanted or (type(value), wanted) in ((int, float), (list, tuple))
        if not fits or (name in _AT_LEAST_ONE and value < 1):
            raise UserError(f"{place}: is {value!r}; it must be {_WANTED.get(wanted, wanted.__name__)}{_least(name)}")

    @property
    def arguments(self) -> dict[str, Any]:
        """Options as EnvPool takes them."""
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in self.kwargs.items()}
        match options.get("max_episode_steps", 0):
            case None:
                del options["max_episode_steps"]
            case -1:
                options["max_episode_steps"] = _NO_LIMIT
        return {**options, "render_mode": "rgb_array"} if self.render else options

    def pool(self, seed: int) -> Any:
        """A pool, whose environments start with seeds that follow from `seed`. Raises UserError as EnvPool does."""
        import envpool

        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments) >> 1
        made = self._call(
            envpool.make_gymnasium,
            num_envs=self.num_environments,
            num_threads=self.num_threads,
            seed=seeds.tolist(),
            **self.arguments,
        )
        with warnings.catch_warnings():
            # The bounds of its spaces are float64; it makes the spaces when it is first asked for them.
            warnings.filterwarnings("ignore", message=".*precision lowered by casting")
            _ = made.observation_space, made.action_space
        return made

    def _call(self, make: Any, **arguments: Any) -> Any:
        try:
            return make(self.id, **arguments)
        except (ImportError, RuntimeError, TypeError, ValueError) as error:
            said = " ".join(str(error).split())[:_LONGEST_MESSAGE]
            raise UserError(f"{self.where}: EnvPool cannot make it: {type(error).__name__}: {said}") from error


_WANTED = {bool: "true or false", int: "a whole number", float: "a number", str: "text", tuple: "a list"}


def _least(name: str) -> str:
    return " of at least 1" if name in _AT_LEAST_ONE else ""


class Pool:
    """One pool after the other, called as a Gymnasium vector: EnvPool takes seeds only where a pool is made.

    Args:
        recipe: how the pools are made.
        seed: of the first pool.
    """

    metadata: Mapping[str, Any] = {}

    def __init__(self, recipe: PoolRecipe, seed: int) -> None:
        self._recipe = recipe
        self._pool: Any = recipe.pool(seed)
        self._unused_seed: int | None = seed
        self.config: Mapping[str, Any] = self._pool.config
        """All options, with their defaults."""
        self.single_observation_space = _without_empty_bounds(self._pool.observation_space)
        self.single_action_space = _without_empty_bounds(self._pool.action_space)

    def reset(self, *, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Starts all environments anew."""
        if seed != self._unused_seed:
            self._pool = None  # Its threads and simulators end before those of the next are made.
            self._pool = self._recipe.pool(seed)
        self._unused_seed = None
        returned: tuple[Any, Mapping[str, Any]] = self._pool.reset()
        return returned

    def step(self, actions: Array) -> tuple[Any, ...]:
        """Plays one step; environments that have ended begin anew instead."""
        returned: tuple[Any, ...] = self._pool.step(actions)
        return returned

    @property
    def render_mode(self) -> str | None:
        return "rgb_array" if self._recipe.render else None

    def render(self) -> list[Array]:
        """Pictures of those environments that are drawn, the first one alone."""
        return list(self._pool.render())

    def close(self) -> None:
        self._pool = None


def _without_empty_bounds(space: Any) -> Any:
    """The space with infinity where EnvPool has C++'s `numeric_limits<T>::min()`, the least positive number, for it."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: _without_empty_bounds(part) for name, part in space.spaces.items()})
    if not isinstance(space, spaces.Box) or space.dtype.kind != "f":
        return space
    limits = np.finfo(space.dtype)
    is_empty = (space.low == limits.tiny) & (space.high == limits.max)
    low, high = np.where(is_empty, -np.inf, space.low), np.where(is_empty, np.inf, space.high)
    return spaces.Box(low.astype(space.dtype), high.astype(space.dtype), dtype=space.dtype)
