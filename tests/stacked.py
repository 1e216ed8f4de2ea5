"""An environment whose observations are stacks of another's, made agent by agent as plainly as can be."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import PositiveInt

from srlhpc.environment import Array, ArraySpec, Environment, Kind, KindStep, SavedState, Spaces, Stack, Step
from tests import scripted


class Settings(scripted.Settings):
    """Stacks of what `tests.scripted` shows, so that a spec can name `tests.stacked`."""

    frames: PositiveInt = 3
    """Frames of a stack."""
    every: PositiveInt = 2
    """In which episodes of an agent stacks begin anew."""

    def spaces(self) -> Spaces:
        return build(self, 1, 0).spaces


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    inner = scripted.build(settings, num_environments, seed, render)
    return Stacked(inner, settings.frames, "newest", every=settings.every)


class Stacked(Environment):
    """Stacks the last frames of every observation.

    Args:
        inner: what is played.
        frames: of a stack.
        filled_with: what stands for frames from before the beginning.
        is_declared: whether the spaces say that observations are stacks.
        every: stacks begin anew in every `every`-th episode of an agent that begins with the environment's; in others
            they go on with the frames of the episode before.
    """

    def __init__(
        self,
        inner: Environment,
        frames: int,
        filled_with: Literal["zeros", "newest"] = "zeros",
        *,
        is_declared: bool = True,
        every: int = 1,
    ) -> None:
        self._inner, self._stack, self._every = inner, Stack(frames, filled_with), every
        self._is_declared = is_declared
        self.num_environments = inner.num_environments
        self.spaces = Spaces(tuple(self._stacked(kind) for kind in inner.spaces.kinds))
        self._shown: dict[str, KindStep] = {}
        self._episodes: dict[str, Array] = {}

    def _stacked(self, kind: Kind) -> Kind:
        observations = {
            key: ArraySpec((self._stack.frames, *array.shape), array.dtype) for key, array in kind.observations.items()
        }
        stacks = dict.fromkeys(observations, self._stack) if self._is_declared else {}
        return dataclasses.replace(kind, observations=observations, stacks=stacks)

    def reset(self, seed: int) -> Step:
        rows = {kind.name: (self.num_environments, len(kind.agents)) for kind in self.spaces.kinds}
        self._episodes = {name: np.zeros(shape, np.int64) for name, shape in rows.items()}
        return self._show(self._inner.reset(seed))

    def step(self, actions: Mapping[str, Array]) -> Step:
        return self._show(self._inner.step(actions))

    def _show(self, step: Step) -> Step:
        self._shown = {name: self._show_kind(name, now) for name, now in step.kinds.items()}
        return Step(self._shown, step.episodes)

    def _show_kind(self, name: str, now: KindStep) -> KindStep:
        begins = ~now.alive | (now.first & (self._episodes[name] % self._every == 0))
        self._episodes[name] += now.first
        observations = {
            key: np.array(
                [
                    [self._add((name, key, env, agent), frame, begins[env, agent]) for agent, frame in enumerate(row)]
                    for env, row in enumerate(array)
                ]
            )
            for key, array in now.observations.items()
        }
        return self._as_said(now, observations, begins)

    def _as_said(self, now: KindStep, observations: dict[str, Array], begins: Array) -> KindStep:
        said = begins if self._every > 1 else None
        return dataclasses.replace(now, observations=observations, stacks_begin=said)

    def _add(self, whose: tuple[str, str, int, int], frame: Array, begins: bool) -> Array:
        name, key, env, agent = whose
        filling = np.zeros_like(frame) if self._stack.filled_with == "zeros" else frame
        older = [filling] * (self._stack.frames - 1) if begins else self._shown[name].observations[key][env, agent][1:]
        return np.array([*older, frame])

    def save_state(self) -> SavedState | None:
        inner = self._inner.save_state()
        if inner is None:
            return None
        stacks = {
            f"stack/{name}/{key}": array.copy()
            for name, now in self._shown.items()
            for key, array in now.observations.items()
        }
        begins = {f"begins/{name}": now.new_stacks for name, now in self._shown.items()}
        episodes = {f"episodes/{name}": played.copy() for name, played in self._episodes.items()}
        return {**inner, **stacks, **begins, **episodes}

    def load_state(self, state: SavedState) -> Step:
        step = self._inner.load_state(state)
        self._episodes = {name: state[f"episodes/{name}"].copy() for name in step.kinds}
        for name, now in step.kinds.items():
            stacks = {key: state[f"stack/{name}/{key}"].copy() for key in now.observations}
            self._shown[name] = self._as_said(now, stacks, state[f"begins/{name}"])
        return Step(self._shown, step.episodes)
