"""Checks at the edge to the environment: what a step must be, so that trust inside is earned.

Letters: E copies, A agents of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import Discrete, Kind, KindStep, MultiDiscrete, Spaces, Step


class StepCheck:
    """Compares every step with the spaces that the environment declared.

    Args:
        spaces: as the plan knows them.
        copies: E.
    """

    def __init__(self, spaces: Spaces, copies: int) -> None:
        self._kinds = [(kind, _expected(kind, copies)) for kind in spaces.kinds]

    def __call__(self, step: Step) -> None:
        """Raises ValueError: a shape or dtype differs, a number is not finite, a mask allows nothing."""
        for kind, expected in self._kinds:
            if kind.name not in step.kinds:
                raise ValueError(f"kind '{kind.name}' is missing; the step has {', '.join(step.kinds) or 'none'}")
            for name, array in _arrays(step.kinds[kind.name], kind):
                _check_array(f"{name} of kind '{kind.name}'", array, *expected[name])
            if kind.has_action_masks:
                _check_masks(kind, step.kinds[kind.name].action_masks)
        for episode in step.episodes:
            if not np.isfinite(list(episode.returns.values())).all():
                raise ValueError(f"the return of an episode is not finite: {dict(episode.returns)}")


_FLAGS = ("first", "valid", "alive", "terminated", "truncated")


def _expected(kind: Kind, copies: int) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    lead = (copies, len(kind.agents))
    expected = {
        f"observation '{key}'": ((*lead, *spec.shape), np.dtype(spec.dtype)) for key, spec in kind.observations.items()
    }
    expected |= {name: (lead, np.dtype(np.bool_)) for name in _FLAGS}
    expected["rewards"] = (lead, np.dtype(np.float32))
    expected["action_masks"] = ((*lead, kind.actions.mask_size), np.dtype(np.bool_))
    return expected


def _arrays(step: KindStep, kind: Kind) -> Iterator[tuple[str, NDArray[Any] | None]]:
    for key in kind.observations:
        yield f"observation '{key}'", step.observations.get(key)
    yield "rewards", step.rewards
    for name in _FLAGS:
        yield name, getattr(step, name)
    if kind.has_action_masks:
        yield "action_masks", step.action_masks


def _check_array(name: str, array: NDArray[Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if array is None or array.shape != shape or array.dtype != dtype:
        found = "is missing" if array is None else f"has shape {array.shape} {array.dtype}"
        raise ValueError(f"{name} {found}, declared is {shape} {dtype}")
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} has a number that is not finite (nan or inf)")


def _check_masks(kind: Kind, masks: NDArray[np.bool_] | None) -> None:
    assert masks is not None
    match kind.actions:
        case Discrete():
            allowed = bool(masks.any(axis=-1).all())
        case MultiDiscrete(choices=choices):
            starts = np.cumsum((0, *choices[:-1]))
            allowed = bool(np.logical_or.reduceat(masks, starts, axis=-1).all())
        case _:
            allowed = True
    if not allowed:
        raise ValueError(f"action_masks of kind '{kind.name}' allow no choice; at least one must be allowed")
