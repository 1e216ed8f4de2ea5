"""Vectors that packages register themselves, where they mean what single environments mean."""

from __future__ import annotations

import contextlib
import importlib
import logging
from typing import Any

from envs._gymnasium_making import Recipe
from srlhpc.errors import UserError

log = logging.getLogger(__name__)


class _NotNative(Exception):
    """Why environments cannot be stepped by the vector that their package offers."""


def native_vector(recipe: Recipe, first: Any, num_environments: int) -> Any:
    """The native vector of `num_environments` environments of which `first` is one; None where environments must be
    stepped by turns.

    It is used only where every argument means in it what it means in `gymnasium.make`.

    Raises:
        UserError: it cannot be used, but `vectorization_mode` demands it.
    """
    try:
        vector = _make(recipe, first.spec, num_environments)
        _require(vector, _differs_by(vector, first))
    except _NotNative as reason:
        if recipe.demands_native:
            raise UserError(f"environment.kwargs.vectorization_mode: no native vector here: {reason}") from None
        log.debug("%s: environments are stepped one after the other: %s", recipe.where, reason)
        return None
    return vector


def vector_only(recipe: Recipe, num_environments: int) -> Any:
    """The native vector of an id that has no single environments; None if it has them, or is not known.

    Raises:
        UserError: it cannot be used.
    """
    import gymnasium

    module, _, bare = recipe.name.rpartition(":")
    if module:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    spec = gymnasium.registry.get(bare)
    if spec is None or spec.entry_point is not None:
        return None
    try:
        return _make(recipe, spec, num_environments)
    except _NotNative as reason:
        raise UserError(f"{recipe.where} is registered as a vector only, which cannot be used: {reason}") from None


def _make(recipe: Recipe, spec: Any, num_environments: int) -> Any:
    import gymnasium
    from gymnasium.vector import AutoresetMode

    _check(recipe, spec)
    arguments = {**spec.kwargs, **recipe.arguments}
    arguments.pop("disable_env_checker", None)
    if arguments.get("max_episode_steps", 0) is None:
        del arguments["max_episode_steps"]
    try:
        vector = gymnasium.make_vec(spec.id, num_environments, vectorization_mode="vector_entry_point", **arguments)
    except (TypeError, gymnasium.error.Error, ImportError) as error:
        raise _NotNative(f"it cannot be made: {error}") from error
    mode = vector.metadata.get("autoreset_mode")
    is_next_step = mode in (AutoresetMode.NEXT_STEP, AutoresetMode.NEXT_STEP.value)
    named = getattr(mode, "value", mode)
    _require(vector, "" if is_next_step else f"its autoreset_mode is {named}, which loses steps; it must be Decision")
    return vector


def _check(recipe: Recipe, spec: Any) -> None:
    """Raises _NotNative where a vector could not do what single simulators do."""
    if recipe.kwargs.get("vectorization_mode") == "sync":
        raise _NotNative("vectorization_mode is sync")
    if spec is None or spec.vector_entry_point is None:
        raise _NotNative("the environment registers none")
    if spec.additional_wrappers or recipe.wrappers:
        raise _NotNative("wrappers go around single environments")
    if not recipe.kwargs.get("disable_env_checker", True):
        raise _NotNative("the environment checker looks at single environments")
    if recipe.kwargs.get("max_episode_steps") == -1:
        raise _NotNative("max_episode_steps is -1, and a vector counts its steps itself")


def _require(vector: Any, fault: str) -> None:
    if fault:
        vector.close()
        raise _NotNative(fault)


def _differs_by(vector: Any, first: Any) -> str:
    """What of the vector is not as in a single environment; "" for nothing."""
    if vector.single_observation_space != first.observation_space:
        return f"it observes {vector.single_observation_space}, a single environment {first.observation_space}"
    if vector.single_action_space != first.action_space:
        return f"its actions are {vector.single_action_space}, those of a single environment {first.action_space}"
    return ""
