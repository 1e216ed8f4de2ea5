"""Any Gymnasium environment by its id: one agent, E environments in one process.

Where an environment registers a vector with next-step auto-reset and plain float observations, in which all arguments
mean what they mean for one environment, that is used; else the environments are stepped one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from envs._action_masks import MASK, has_masks, split_mask
from envs._gymnasium_actions import ActionCodec, action_codec
from envs._gymnasium_declared import declared_spaces
from envs._gymnasium_making import Recipe, Wrapper
from envs._gymnasium_simulators import Looped, Vectorised
from envs._gymnasium_spaces import ObservationKeys, observation_keys
from envs._gymnasium_vectors import native_vector, vector_only
from envs._old_gym import first_reset
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, Environment, Step
from srlhpc.specs.named_modules import EnvironmentSettings

_FLATTEN_REMEDY = (
    "turn it into one of them, as in environment: {..., wrappers: [gymnasium.wrappers.FlattenObservation]}, or by a "
    "wrapper of yours: wrappers: ['my_lab.wrappers:Numbers']"
)

_OWN_REMEDY = (
    "turn it into one of them by a gymnasium.ObservationWrapper of yours, as in environment: {..., wrappers: "
    "['my_lab.wrappers:Numbers']}"
)

_ACTION_REMEDY = (
    "turn it into one of them by a gymnasium.ActionWrapper of yours, as in environment: {..., wrappers: "
    "['my_lab.wrappers:OneChoice']}"
)


class Settings(EnvironmentSettings):
    """A Gymnasium environment."""

    id: str
    """Registered id, for example `CartPole-v1`; `module:Name-v0` imports the module first."""
    kwargs: dict[str, Any] = {}
    """Further arguments of `gymnasium.make`. `vectorization_mode: sync` steps the environments one after the other
    where the environment has a vector of its own, `vector_entry_point` insists on that."""
    wrappers: tuple[Wrapper, ...] = ()
    """Wrappers around each environment, the innermost first: import paths, as `gymnasium.wrappers.FlattenObservation`,
    or `{path: {argument: value}}`."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: the id is not known, its packages are missing, or its spaces are not understood.
    """
    return from_recipe(Recipe(settings.id, settings.kwargs, settings.wrappers, render), num_environments, seed)


def from_recipe(recipe: Recipe, num_environments: int, seed: int) -> Environment:
    """`num_environments` environments of a registered id; errors as in `build`."""
    if (vector := vector_only(recipe, num_environments)) is not None:
        understood = _understood(*declared_spaces(vector, recipe.where, "single_"), recipe.where)
        return _vectorised(
            vector,
            num_environments,
            understood,
            masked=understood.is_masked_by(first_reset(vector, seed, recipe.where)[1]),
        )
    first = recipe.simulator()
    understood = _understood(*declared_spaces(first, recipe.where), recipe.where)
    raw, info = first_reset(first, seed, recipe.where)
    understood.observations.check(raw, recipe.where)
    # Other observations are no faster in a vector.
    may_be_native = understood.observations.is_one_plain_array or recipe.demands_native
    vector = native_vector(recipe, first, num_environments) if may_be_native else None
    if vector is not None:
        masked = understood.is_masked_by(first_reset(vector, seed, recipe.where)[1])
        if masked or not understood.is_masked_by(info):
            first.close()
            return _vectorised(vector, num_environments, understood, masked=masked)
        vector.close()  # Its masks would be lost.
    masked = understood.mask_in_observation or has_masks([info], understood.codec.space, recipe.where)
    simulators = [first, *(recipe.simulator() for _ in range(num_environments - 1))]
    return GymnasiumEnvironment(Looped(simulators, *understood), understood, num_environments, masked=masked)


class _Understood(NamedTuple):
    """A simulator's spaces, as they are read and written."""

    observations: ObservationKeys
    codec: ActionCodec
    mask_in_observation: bool

    def is_masked_by(self, info: Mapping[str, Any]) -> bool:
        """Whether the first reset, whose info this is, gave a mask."""
        return self.mask_in_observation or MASK in info


def _understood(observation_space: Any, action_space: Any, where: str) -> _Understood:
    codec = action_codec(action_space, where, _ACTION_REMEDY)
    shown, mask_in_observation = split_mask(observation_space, codec.space, where)
    # Flattened, a mask would be an observation as others are.
    flattens = not mask_in_observation and _becomes_a_box(shown)
    keys = observation_keys(shown, where, _FLATTEN_REMEDY if flattens else _OWN_REMEDY)
    return _Understood(keys, codec, mask_in_observation)


def _becomes_a_box(space: Any) -> bool:
    """Whether FlattenObservation makes numbers of it: not of graphs and sequences, nor of spaces it does not know."""
    try:
        return bool(getattr(space, "is_np_flattenable", False))
    except NotImplementedError:
        return False


def _vectorised(vector: Any, num_environments: int, understood: _Understood, *, masked: bool) -> Environment:
    return GymnasiumEnvironment(
        Vectorised(vector, num_environments, *understood), understood, num_environments, masked=masked
    )


class GymnasiumEnvironment(Environment):
    """Single-agent simulators behind the contract."""

    def __init__(
        self, simulators: Vectorised | Looped, understood: _Understood, num_environments: int, *, masked: bool
    ) -> None:
        self._codec = understood.codec
        self.spaces = single_agent_spaces(understood.observations.specs, self._codec.space, has_action_masks=masked)
        self.num_environments = num_environments
        self._simulators = simulators
        self._records = SingleAgentRecords(self.spaces, num_environments)

    def reset(self, seed: int) -> Step:
        self._simulators.reset(seed, self._records.now)
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        ended = self._records.ended
        chosen = actions[AGENT][:, 0]
        if np.count_nonzero(ended):
            chosen = chosen.copy()
            chosen[ended] = self._codec.idle
        self._simulators.step(self._codec.decode(chosen), ended, self._records.now)
        return self._records.finish()

    def render(self) -> Array | None:
        return self._simulators.render()

    @property
    def render_fps(self) -> float | None:
        return self._simulators.render_fps

    def close(self) -> None:
        self._simulators.close()
