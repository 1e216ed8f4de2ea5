"""A user's simulator of E copies as a vector with next-step auto-reset, whatever it does itself where an episode ends.

| `autoreset` | the step that ends an episode returns | the step after it |
|---|---|---|
| `next_step` | the last observation | begins anew, whatever the action |
| `disabled` | the last observation | is played, and forgotten: `reset_some` begins anew |
| `same_step` | the first observation of the next episode, the last in `final_observations` | likewise |

Letters: E copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from envs._returned_values import SimulatorError, array_of, checked_info
from srlhpc.environment import Array, BoolArray
from srlhpc.errors import UserError

Autoreset = Literal["next_step", "disabled", "same_step"]
FINAL = "final_observations"
METRICS = "metrics"

_REMEDY = (
    "say in the class what `step` does where an episode has ended: autoreset = 'next_step' (the last observation; the "
    "next step begins anew), 'same_step' (the first observation of the next episode) or 'disabled' (the last "
    "observation, and `reset_some` begins anew)"
)


def check_simulator(simulator: Any, where: str) -> None:
    """Refuses what is no simulator of copies.

    Raises:
        UserError: with what is missing.
    """
    mode = getattr(simulator, "autoreset", None)
    if mode not in get_args(Autoreset):
        raise UserError(f"{where}: its autoreset is {mode!r}; {_REMEDY}")
    needed = ["reset", "step", "observation_space", "action_space"]
    needed += [] if mode == "next_step" else ["reset_some"]
    if lacking := [name for name in needed if not hasattr(simulator, name)]:
        advice = "; it takes a mask of copies, bool [E], begins these anew and returns observations of all"
        raise UserError(
            f"{where}: has no {' and no '.join(f'`{name}`' for name in lacking)}, which it must have"
            f"{advice if 'reset_some' in lacking else ''} (docs/vector.md)"
        )


class NextStepVector:
    """The simulator, called as a vector of Gymnasium's.

    Args:
        simulator: of the user; `check_simulator` found nothing.
        num_environments: E.
    """

    def __init__(self, simulator: Any, num_environments: int) -> None:
        from gymnasium import spaces

        self._simulator = simulator
        self._mode: Autoreset = simulator.autoreset
        self._shows_tuples = isinstance(simulator.observation_space, spaces.Tuple)
        self._ended: BoolArray = np.zeros(num_environments, np.bool_)
        self.single_observation_space = simulator.observation_space
        self.single_action_space = simulator.action_space
        self.metadata: Mapping[str, Any] = getattr(simulator, "metadata", {})
        self.render_mode = "rgb_array" if hasattr(simulator, "render") else None
        self.metrics: Mapping[str, Any] = {}
        """What the last step told of episodes, `[E]` each; of those that ended with it."""

    def reset(self, *, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Begins all copies anew."""
        self._ended[:] = False
        observations = self._simulator.reset(seed)
        if isinstance(observations, tuple) and not self._shows_tuples:
            raise SimulatorError(
                f"`reset` returned {len(observations)} values, expected observations alone: an info is for `step`"
            )
        return observations, {}

    def step(self, actions: Array) -> tuple[Any, ...]:
        """Plays one step; copies that have ended begin anew instead."""
        observations, rewards, terminated, truncated, info = _five(self._simulator.step(actions))
        waited = self._ended
        if self._mode != "next_step" and waited.any():
            observations = _mixed(waited, self._simulator.reset_some(waited.copy()), observations, "reset_some")
        ended = (_flags(terminated, "terminated") | _flags(truncated, "truncated")) & ~waited
        if self._mode == "same_step" and ended.any():
            if FINAL not in info:
                raise SimulatorError(
                    f"an episode ended, and info has no '{FINAL}': with autoreset 'same_step' the last observation, "
                    "from which values are estimated, is there, in an array of all copies"
                )
            observations = _mixed(ended, info[FINAL], observations, FINAL)
        self._ended = ended
        self.metrics = mapping(info.get(METRICS, {}), f"info['{METRICS}']")
        return observations, rewards, terminated, truncated, info

    def continues(self, ended: BoolArray) -> None:
        """The copies that had ended when the simulator was saved."""
        self._ended = ended.copy()

    def render(self) -> list[Any]:
        """A picture of the first copy."""
        drawn = self._simulator.render()
        return list(drawn) if isinstance(drawn, list | tuple) else [drawn]

    def close(self) -> None:
        if hasattr(self._simulator, "close"):
            self._simulator.close()


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """What has names; refuses all else.

    Raises:
        SimulatorError: it has none, or other names than words.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SimulatorError(f"{name} is {type(value).__name__} {value!r:.60}, expected a mapping of names to arrays")
    return value


def _five(returned: Any) -> tuple[Any, Any, Any, Any, Mapping[str, Any]]:
    if not isinstance(returned, tuple) or len(returned) not in (4, 5):
        found = f"{len(returned)} values" if isinstance(returned, tuple) else type(returned).__name__
        raise SimulatorError(
            f"`step` returned {found}, expected (observations, rewards, terminated, truncated), or these and an info"
        )
    info = returned[4] if len(returned) == 5 else {}
    return (*returned[:4], checked_info(info))


def _flags(values: Any, name: str) -> BoolArray:
    flags = array_of(values, name)
    if flags.dtype != np.bool_:
        raise SimulatorError(f"{name} has dtype {flags.dtype}, expected bool")
    return flags


def _mixed(chosen: BoolArray, ours: Any, others: Any, name: str) -> Any:
    """Rows of one where chosen, else of the other; of Dicts and Tuples each part."""
    if isinstance(others, Mapping):
        return {key: _mixed(chosen, _part(ours, key, name), rows, name) for key, rows in others.items()}
    if isinstance(others, tuple):
        return tuple(_mixed(chosen, _part(ours, place, name), rows, name) for place, rows in enumerate(others))
    rows, mine = array_of(others, "observations"), array_of(ours, name)
    if mine.shape != rows.shape:
        raise SimulatorError(f"{name} has shape {mine.shape}, observations of all copies have {rows.shape}")
    return np.where(chosen.reshape(-1, *[1] * (rows.ndim - 1)), mine, rows)


def _part(whole: Any, key: Any, name: str) -> Any:
    try:
        return whole[key]
    except (KeyError, IndexError, TypeError):
        raise SimulatorError(f"{name} has no part {key!r}, which observations have") from None
