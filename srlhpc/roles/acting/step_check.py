"""Checks at the edge to the environment: what a step must be, so that trust inside is earned.

Letters: E environments, A agents of a kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import Discrete, Kind, KindStep, MultiDiscrete, Spaces, Step

FIRST_STEPS = 100
"""Steps that are looked at more closely: what is wrong by design is wrong in one of them."""

_Declared = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype."""


class StepCheck:
    """Compares every step with the spaces that the environment declared.

    Args:
        spaces: as the plan knows them.
        num_environments: E.
    """

    def __init__(self, spaces: Spaces, num_environments: int) -> None:
        self._kinds = [(kind, _expected(kind, num_environments)) for kind in spaces.kinds]
        self._names = {kind.name for kind in spaces.kinds}
        self._looks_left = FIRST_STEPS

    def __call__(self, step: Step) -> None:
        """Raises ValueError: a shape or dtype differs, a number is not finite, a mask allows nothing.

        In the first steps also: something is there that was not declared.
        """
        for kind, expected in self._kinds:
            if kind.name not in step.kinds:
                raise ValueError(f"kind '{kind.name}' is missing; the step has {', '.join(step.kinds) or 'none'}")
            _check_kind(kind, step.kinds[kind.name], expected)
        for episode in step.episodes:
            if not np.isfinite(list(episode.returns.values())).all():
                raise ValueError(f"the return of an episode is not finite: {dict(episode.returns)}")
        if self._looks_left:
            self._looks_left -= 1
            self._look(step)

    def _look(self, step: Step) -> None:
        _check_declared("kinds", step.kinds, self._names)
        for kind, _ in self._kinds:
            now = step.kinds[kind.name]
            _check_declared(f"observations of kind '{kind.name}'", now.observations, set(kind.observations))
            if now.action_masks is not None and not kind.has_action_masks:
                raise ValueError(f"kind '{kind.name}' gives action_masks, but declares has_action_masks as false")
            if now.state is not None and kind.state is None:
                raise ValueError(f"kind '{kind.name}' gives a state, but declares none")
            if now.waits is not None and not kind.takes_turns:
                raise ValueError(f"kind '{kind.name}' says who waits, but declares turn_steps as {kind.turn_steps}")


_STATE = "state"
_FLAGS = ("first", "valid", "alive", "terminated", "truncated")


def _check_kind(kind: Kind, now: KindStep, expected: Mapping[str, _Declared]) -> None:
    for name, array in _arrays(now, kind):
        _check_array(name, kind, array, *expected[name])
    if kind.has_action_masks:
        _check_masks(kind, now.action_masks)


def _expected(kind: Kind, num_environments: int) -> dict[str, _Declared]:
    lead = (num_environments, len(kind.agents))
    expected = {
        f"observation '{key}'": ((*lead, *spec.shape), np.dtype(spec.dtype)) for key, spec in kind.observations.items()
    }
    expected |= {name: (lead, np.dtype(np.bool_)) for name in (*_FLAGS, "stacks_begin", "waits")}
    expected["rewards"] = (lead, np.dtype(np.float32))
    expected["action_masks"] = ((*lead, kind.actions.mask_size), np.dtype(np.bool_))
    if kind.state is not None:
        expected[_STATE] = ((num_environments, *kind.state.shape), np.dtype(kind.state.dtype))
    return expected


def _arrays(step: KindStep, kind: Kind) -> Iterator[tuple[str, NDArray[Any] | None]]:
    for key in kind.observations:
        yield f"observation '{key}'", step.observations.get(key)
    yield "rewards", step.rewards
    for name in _FLAGS:
        yield name, getattr(step, name)
    if kind.has_action_masks:
        yield "action_masks", step.action_masks
    if step.stacks_begin is not None:
        yield "stacks_begin", step.stacks_begin
    if kind.state is not None:
        yield _STATE, step.state
    if kind.takes_turns:
        yield "waits", step.waits


def _check_array(
    name: str, kind: Kind, array: NDArray[Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    if array is None or array.shape != shape or array.dtype != dtype:
        found = "is missing" if array is None else f"has shape {array.shape} {array.dtype}"
        raise ValueError(f"{name} of kind '{kind.name}' {found}, declared is {shape} {dtype}")
    if dtype.kind == "f" and not np.isfinite(array).all():
        place = _first_place(None if name == _STATE else kind, ~np.isfinite(array))
        raise ValueError(f"{name} of kind '{kind.name}' has a number that is not finite (nan or inf): {place}")


def _first_place(kind: Kind | None, wrong: NDArray[np.bool_]) -> str:
    """The first wrong number `[E, A, ...]`, or without a kind `[E, ...]`."""
    env, *place = (int(i) for i in np.argwhere(wrong)[0])
    where = f"environment {env}"
    if kind is not None:
        agent, *place = place
        where += f", agent '{kind.agents[agent]}'"
    return where + (f", at {place}" if place else "")


def _check_declared(what: str, found: Iterable[str], declared: set[str]) -> None:
    unknown = sorted(set(found) - declared)
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        raise ValueError(f"{what} hold {names}, which the spaces do not declare ({', '.join(sorted(declared))})")


def _check_masks(kind: Kind, masks: NDArray[np.bool_] | None) -> None:
    assert masks is not None
    match kind.actions:
        case Discrete():
            allowed = np.asarray(masks.any(axis=-1))
        case MultiDiscrete(choices=choices):
            starts = np.cumsum((0, *choices[:-1]))
            allowed = np.asarray(np.logical_or.reduceat(masks, starts, axis=-1).all(axis=-1))
        case _:
            return
    if not allowed.all():
        place = _first_place(kind, ~allowed)
        raise ValueError(f"action_masks of kind '{kind.name}' allow no choice; at least one must be allowed: {place}")
