"""The state of environments of dm_control's suite as arrays, from which they go on bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from envs._generators import legacy_generator_words, load_legacy_generator
from srlhpc.environment import Array, SavedState


class SuiteState:
    """Environments of one task: their physics, their generators, and what episodes change of their models.

    Many tasks write what an episode is about into their model: where a target is, how the ground is shaped. Attributes
    of their own are the same in every episode.

    Args:
        environments: just loaded, with equal models.
    """

    def __init__(self, environments: Sequence[Any]) -> None:
        self._environments = environments
        self._model = {name: array.copy() for name, array in _arrays(environments[0].physics.model.ptr).items()}
        """The arrays of the model before the first episode."""

    def save(self) -> SavedState:
        environments = self._environments
        models = [_arrays(environment.physics.model.ptr) for environment in environments]
        changed = [
            name
            for name, array in self._model.items()
            if not all(np.array_equal(model[name], array) for model in models)
        ]
        return {
            "physics": np.stack([environment.physics.get_state(_whole()) for environment in environments]),
            "random": np.stack([legacy_generator_words(environment.task.random) for environment in environments]),
            "steps": np.array([environment._step_count for environment in environments], np.int64),
            **{f"model.{name}": np.stack([model[name] for model in models]) for name in changed},
        }

    def load(self, state: SavedState) -> None:
        import mujoco

        for index, environment in enumerate(self._environments):
            physics = environment.physics
            # The beginning of an episode sets up more than is saved, all of it the same each time.
            environment.reset()
            for name, array in _arrays(physics.model.ptr).items():
                saved = state[f"model.{name}"][index] if f"model.{name}" in state else self._model[name]
                if not np.array_equal(array, saved):
                    array[...] = saved
            load_legacy_generator(environment.task.random, state["random"][index])
            environment._step_count = int(state["steps"][index])
            physics.set_state(state["physics"][index], _whole())
            # A step begins with what follows from positions and velocities, and ends with working that out.
            mujoco.mj_step1(physics.model.ptr, physics.data.ptr)


def _whole() -> int:
    """MuJoCo's word for all that the next step follows from, the start of its solver included."""
    import mujoco

    return int(mujoco.mjtState.mjSTATE_INTEGRATION.value)


def _arrays(model: Any) -> dict[str, Array]:
    found = {name: getattr(model, name) for name in dir(model) if not name.startswith("_")}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
