"""An environment whose observations are stacks of another's, made agent by agent as plainly as can be."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

import numpy as np

from srlhpc.environment import Array, ArraySpec, Environment, Kind, KindStep, Spaces, Stack, Step


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
        self._before: dict[tuple[str, str, int, int], list[Array]] = {}
        self._episodes: dict[tuple[str, int, int], int] = {}

    def _stacked(self, kind: Kind) -> Kind:
        observations = {
            key: ArraySpec((self._stack.frames, *array.shape), array.dtype) for key, array in kind.observations.items()
        }
        stacks = dict.fromkeys(observations, self._stack) if self._is_declared else {}
        return dataclasses.replace(kind, observations=observations, stacks=stacks)

    def reset(self, seed: int) -> Step:
        self._episodes = {}
        return self._show(self._inner.reset(seed))

    def step(self, actions: Mapping[str, Array]) -> Step:
        return self._show(self._inner.step(actions))

    def _show(self, step: Step) -> Step:
        return Step({name: self._show_kind(name, now) for name, now in step.kinds.items()}, step.episodes)

    def _show_kind(self, name: str, now: KindStep) -> KindStep:
        begins = ~now.alive
        for env, agent in np.argwhere(now.first).tolist():
            played = self._episodes.get((name, env, agent), 0)
            self._episodes[name, env, agent] = played + 1
            begins[env, agent] |= played % self._every == 0
        observations = {
            key: np.array(
                [
                    [self._add((name, key, env, agent), frame, begins[env, agent]) for agent, frame in enumerate(row)]
                    for env, row in enumerate(array)
                ]
            )
            for key, array in now.observations.items()
        }
        said = begins if self._every > 1 else None
        return dataclasses.replace(now, observations=observations, stacks_begin=said)

    def _add(self, whose: tuple[str, str, int, int], frame: Array, begins: bool) -> Array:
        count, frame = self._stack.frames, frame.copy()
        filling = np.zeros_like(frame) if self._stack.filled_with == "zeros" else frame
        before = [filling] * count if begins else self._before[whose]
        self._before[whose] = [*before[1:], frame]
        return np.stack(self._before[whose])
