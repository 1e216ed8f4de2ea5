"""What is said of simulators whose `reset` or `step` are still those of Gym before 0.26."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from envs._returned_values import SimulatorError
from srlhpc.errors import UserError

_REMEDY = "change it, or wrap it (environment.wrappers: ['my_lab.wrappers:AsGymnasium'])"


def first_reset(simulator: Any, seed: int, where: str) -> tuple[Any, Mapping[str, Any]]:
    """Observation and info of a reset.

    Raises:
        UserError: it does not take a seed, or returns something else.
    """
    try:
        returned = simulator.reset(seed=seed)
    except TypeError as error:
        if "unexpected keyword argument 'seed'" not in str(error):
            raise
        raise UserError(f"{where}: its reset takes no seed, as old Gym's; Gymnasium's does: {_REMEDY}") from error
    except ValueError as error:
        if not _is_of_unpacking(error, "expected 2"):
            raise
        returned = None
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
        return returned
    raise UserError(
        f"{where}: its reset does not return an observation and a mapping, as Gymnasium's does (old Gym's returned the "
        f"observation alone): {_REMEDY}"
    )


def of_step(error: ValueError) -> ValueError:
    """What to raise for an error of `step`: in words if that did not return five values."""
    if not _is_of_unpacking(error, "expected 5"):
        return error
    found = "four values (observation, reward, done, info), as old Gym's did" if "got 4" in str(error) else str(error)
    return SimulatorError(
        f"its step returned {found}; Gymnasium's returns observation, reward, terminated, truncated, info: {_REMEDY}"
    )


def _is_of_unpacking(error: ValueError, expected: str) -> bool:
    """Whether somebody who called the simulator, a wrapper of Gymnasium's or we, got another number of values."""
    if "values to unpack" not in str(error) or expected not in str(error):
        return False
    file = traceback.extract_tb(error.__traceback__)[-1].filename.replace("\\", "/")
    return "/gymnasium/" in file or file.endswith(("envs/_gymnasium_simulators.py", "envs/_old_gym.py"))
