"""Any Gymnasium environment by its id: one agent, E environments in one process.

Where an environment registers a vector with next-step auto-reset and plain float observations, in which all arguments
mean what they mean for one environment, that is used; else the environments are stepped one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envs._action_masks import holds_mask
from envs._gymnasium_declared import declared_spaces
from envs._gymnasium_environment import Understood, from_simulators, from_vector, understood
from envs._gymnasium_making import Recipe, Wrapper
from envs._gymnasium_vectors import native_vector, vector_only
from envs._old_gym import first_reset
from srlhpc.environment import Environment
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
    metrics: tuple[str, ...] = ()
    """Numbers in the info of an episode's last step that go into metrics and status: `[is_success]`, `[episode.r]`."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: the id is not known, its packages are missing, or its spaces are not understood.
    """
    recipe = Recipe(settings.id, settings.kwargs, settings.wrappers, render)
    return from_recipe(recipe, num_environments, seed, settings.metrics)


def from_recipe(recipe: Recipe, num_environments: int, seed: int, metrics: Sequence[str] = ()) -> Environment:
    """`num_environments` environments of a registered id; `metrics` of their infos; errors as in `build`."""
    if (vector := vector_only(recipe, num_environments)) is not None:
        spaces = _understood(*declared_spaces(vector, recipe.where, "single_"), recipe.where)
        return from_vector(vector, num_environments, spaces, first_reset(vector, seed, recipe.where)[1], metrics)
    first = recipe.simulator()
    spaces = _understood(*declared_spaces(first, recipe.where), recipe.where)
    raw, info = first_reset(first, seed, recipe.where)
    spaces.observations.check(raw, recipe.where)
    # Other observations are no faster in a vector.
    may_be_native = spaces.observations.are_plain or recipe.demands_native
    vector = native_vector(recipe, first, num_environments) if may_be_native else None
    if vector is not None:
        told = first_reset(vector, seed, recipe.where)[1]
        if spaces.is_masked_by(told) or not spaces.is_masked_by(info):
            first.close()
            return from_vector(vector, num_environments, spaces, told, metrics)
        vector.close()  # Its masks would be lost.
    simulators = [first, *(recipe.simulator() for _ in range(num_environments - 1))]
    return from_simulators(simulators, spaces, info, recipe.where, metrics)


def _understood(observation_space: Any, action_space: Any, where: str) -> Understood:
    # Flattened, a mask would be an observation as others are.
    flattens = not holds_mask(observation_space) and _becomes_a_box(observation_space)
    remedy = _FLATTEN_REMEDY if flattens else _OWN_REMEDY
    return understood(observation_space, action_space, where, remedy, _ACTION_REMEDY)


def _becomes_a_box(space: Any) -> bool:
    """Whether FlattenObservation makes numbers of it: not of graphs and sequences, nor of spaces it does not know."""
    try:
        return bool(getattr(space, "is_np_flattenable", False))
    except NotImplementedError:
        return False
