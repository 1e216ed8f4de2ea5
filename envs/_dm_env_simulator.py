"""A `dm_env.Environment` with the methods of Gymnasium's simulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from envs._returned_values import SimulatorError, one_number
from srlhpc.environment import Array
from srlhpc.errors import UserError

HEIGHT, WIDTH = 480, 640
"""Size of the pictures that MuJoCo draws, the largest that its models allow without being asked."""


class DmSimulator:
    """One environment.

    Its last time step says by its discount how an episode ended: 0 is a termination, more a truncation. Discounts
    before the end must be 1: what a later reward is worth is a setting of the learning rule.

    Args:
        environment: what is played.
        restart: gives the environment to go on with, whose random numbers follow from a seed.
        render: whether pictures are wanted.
    """

    def __init__(self, environment: Any, restart: Callable[[Any, int], Any], *, render: bool) -> None:
        self.environment = environment
        self.render_mode = "rgb_array" if render else None
        self._restart = restart
        self._action_dtype: Any = None

    @property
    def metadata(self) -> Mapping[str, Any]:
        seconds = getattr(self.environment, "control_timestep", None)
        return {"render_fps": 1.0 / seconds()} if callable(seconds) else {}

    def reset(self, *, seed: int | None = None) -> tuple[Any, Mapping[str, Any]]:
        """Starts an episode; the first with `seed` of those that follow from it."""
        if seed is not None:
            self.environment = self._restart(self.environment, seed)
            self._action_dtype = getattr(self.environment.action_spec(), "dtype", None)
        shown = self.environment.reset()
        if not shown.first():
            raise SimulatorError(f"its reset returned a time step of type {shown.step_type!r}, expected FIRST")
        return shown.observation, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
        """Plays one step; raises SimulatorError where the discount says something that cannot be learnt from."""
        shown = self.environment.step(np.asarray(action, self._action_dtype)[()])
        if shown.first():
            raise SimulatorError("its step returned a time step of type FIRST, although no episode had ended")
        discount = one_number(shown.discount, "the discount")
        terminated = truncated = False
        if shown.last():
            if not 0 <= discount <= 1:
                raise SimulatorError(f"the discount of a last time step is {discount}; it must be 0 to 1")
            terminated, truncated = discount == 0, discount > 0
        elif discount != 1:
            raise SimulatorError(
                f"the discount of a time step before the last is {discount}, which would not be learnt from; let it be "
                "1 there, and set policies.NAME.algorithm.gamma instead"
            )
        return shown.observation, shown.reward, terminated, truncated, {}

    def render(self) -> Array:
        """A picture, uint8 `[height, width, 3]`: MuJoCo's where it has `physics`, else of its own `render`."""
        physics = getattr(self.environment, "physics", None)
        if physics is None and not hasattr(self.environment, "render"):
            raise UserError(
                f"--video: {type(self.environment).__name__} has neither physics nor a method `render`, so it draws no "
                "pictures; give it a `render` that returns bytes (uint8) [height, width, 3]"
            )
        if physics is None:
            picture: Array = self.environment.render()
        else:
            picture = physics.render(HEIGHT, WIDTH, camera_id=0 if physics.model.ncam else -1)
        return picture

    def close(self) -> None:
        environment, self.environment = self.environment, None
        if environment is not None:
            environment.close()
