"""Scenarios of SMAX by their names in the package `jaxmarl`, which is loaded so that it computes in one thread."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from envs._bare_modules import load_bare
from envs._smax_battles import Battles
from srlhpc.environment import Array
from srlhpc.errors import UserError, did_you_mean
from srlhpc.specs.problems import shown

_ELSEWHERE = {
    "scenario": "it is a setting of its own, environment.scenario",
    "attack_mode": "it is a setting of its own, environment.attack_mode",
    "see_enemy_actions": "it is a setting of its own, environment.see_enemy_actions",
    "max_steps": "it is a setting of its own, environment.max_steps",
    "num_allies": "the scenario says how many units there are",
    "num_enemies": "the scenario says how many units there are",
    "smacv2_position_generation": "the scenario says it, as smacv2_5_units does",
    "smacv2_unit_type_generation": "the scenario says it, as smacv2_5_units does",
    "action_type": "actions are discrete here",
    "unit_type_names": "units are those of the package",
    "unit_type_shorthands": "units are those of the package",
}
"""Arguments of the package that are set in another way, and how."""
_WANTED = {"b": "true or false", "i": "a whole number above 0", "f": "a number", "U": "a word"}
"""Values of an argument by the kind of its default."""
_POOL = "NPROC"
"""How many threads XLA starts to compute with; without it one for each core of the machine."""


@functools.cache
def load_smax() -> Any:
    """The package's module `environments.smax`; JAX then computes on the CPU, with one thread."""
    with _one_thread():
        import jax

        # A GPU would be filled: JAX takes three quarters of its memory.
        jax.config.update("jax_platforms", "cpu")
        # Who steps waits for what comes out.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        jax.devices()
    # The whole package would load all its environments, and print what it does not find.
    return load_bare("jaxmarl.environments.smax")


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """XLA looks at the variable while it starts; what other libraries make of it is not our business."""
    before = os.environ.get(_POOL)
    os.environ[_POOL] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_POOL]


def load_battles(scenario: str, kwargs: Mapping[str, Any], **arguments: Any) -> Battles:
    """Battles of one scenario against the package's heuristic. Equal ones are compiled once in a process.

    Args:
        scenario: its name in the package.
        kwargs: what the user wants of it beside that.
        arguments: what has settings of its own.

    Raises:
        UserError: there is no such scenario, or it takes other arguments.
    """
    smax = load_smax()
    known = smax.smax_env.MAP_NAME_TO_SCENARIO
    if scenario not in known:
        raise UserError(f"environment.scenario: jaxmarl has no '{scenario}'; there are {', '.join(known)}")
    defaults = _defaults(smax)
    for name, value in kwargs.items():
        _check(name, value, defaults)
    return _battles(scenario, json.dumps({**kwargs, **arguments}, sort_keys=True))


@functools.cache
def _battles(scenario: str, arguments: str) -> Battles:
    import jax.numpy as jnp

    smax = load_smax()
    chosen = {
        name: jnp.asarray(value, jnp.float32) if isinstance(value, list) else value
        for name, value in json.loads(arguments).items()
    }
    try:
        return Battles(smax.HeuristicEnemySMAX(scenario=smax.map_name_to_scenario(scenario), **chosen))
    except ValueError as error:
        raise UserError(f"environment.kwargs: {error}") from None


def _defaults(smax: Any) -> dict[str, Any]:
    """All arguments of the package that have one, by name."""
    parameters = [
        parameter
        for made in (smax.SMAX, smax.HeuristicEnemySMAX)
        for parameter in inspect.signature(made).parameters.values()
    ]
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}


def _check(name: str, value: Any, defaults: Mapping[str, Any]) -> None:
    """Raises UserError: the package takes no such argument, or another kind of value."""
    place = f"environment.kwargs.{name}"
    if name in _ELSEWHERE:
        raise UserError(f"{place}: {_ELSEWHERE[name]}")
    if name not in defaults:
        raise UserError(
            f"{place}: SMAX takes no such argument{did_you_mean(name, sorted(defaults.keys() - _ELSEWHERE))}"
        )
    default = np.asarray(defaults[name])
    if not _is_like(value, default):
        wanted = _WANTED[default.dtype.kind]
        form = f"a list of {default.size}, each {wanted}" if default.ndim else wanted
        # Specs hold lists as tuples.
        raise UserError(f"{place}: is {list(value) if isinstance(value, tuple) else shown(value)}; write {form}")


def _is_like(value: Any, default: Array) -> bool:
    try:
        found = np.asarray(value)
    except ValueError:  # lists of unequal length
        return False
    kinds = "if" if default.dtype.kind == "f" else default.dtype.kind
    # No whole number of the package may be 0: sizes of the map, and how often its world is stepped.
    return found.dtype.kind in kinds and found.shape == default.shape and (kinds != "i" or int(found) > 0)
