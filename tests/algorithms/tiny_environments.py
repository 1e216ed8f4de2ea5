"""Environments that a small network solves within seconds, with next-step auto-reset and both kinds of ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.environment import (
    ActionSpace,
    ArraySpec,
    Continuous,
    Discrete,
    Environment,
    Kind,
    KindStep,
    MultiDiscrete,
    Spaces,
    Step,
)

Array = NDArray[Any]


class Matching(Environment):
    """Every observation is a cue that says which action is right; reward 1 if matched, episodes of `length` steps.

    Args:
        actions: Discrete: the cue's choice is right. MultiDiscrete: the right choice of each part is its own cue's.
            Continuous: reward 1 - |action - cue|^2 / 4 in each dimension, mean over dimensions.
        masked: forbids the choice that follows the right one; taking it raises.
        delay: the cue shows only at the first record; reward comes for the action of the last one.
        truncates: episodes end by truncation, not termination.
        scale: of the reward.
    """

    def __init__(
        self,
        actions: ActionSpace,
        num_environments: int = 16,
        length: int = 4,
        *,
        masked: bool = False,
        delay: bool = False,
        truncates: bool = False,
        scale: float = 1.0,
    ) -> None:
        self._actions = actions
        self._length = length
        self._masked = masked
        self._delay = delay
        self._truncates = truncates
        self._scale = scale
        self.num_environments = num_environments
        self._sizes = _choices(actions)
        width = sum(self._sizes) if self._sizes else actions.array.shape[0]
        kind = Kind("agents", ("agent",), {"cue": ArraySpec((width,), "float32")}, actions, masked)
        self.spaces = Spaces((kind,))

    def reset(self, seed: int) -> Step:
        self._random = np.random.default_rng(seed)
        self._clock = np.arange(self.num_environments) % self._length
        self._ended = np.zeros(self.num_environments, bool)
        self._draw(np.ones(self.num_environments, bool))
        nothing = np.zeros(self.num_environments)
        return self._step(nothing, nothing.astype(bool), first=np.ones(self.num_environments, bool))

    def step(self, actions: Mapping[str, Array]) -> Step:
        chosen = actions["agents"][:, 0]
        playing = ~self._ended
        rewards = np.where(playing, self._scale * self._reward(chosen), 0.0)
        last = self._clock == self._length - 1
        if self._delay:
            rewards *= last
        ended, first = playing & last, self._ended
        self._clock = np.where(first, 0, self._clock + 1)
        self._ended = ended
        self._draw(first if self._delay else np.ones(self.num_environments, bool))
        return self._step(rewards, ended, first=first)

    def _draw(self, where: NDArray[np.bool_]) -> None:
        if self._sizes:
            fresh = np.stack([self._random.integers(size, size=self.num_environments) for size in self._sizes], axis=1)
        else:
            fresh = self._random.uniform(-1, 1, (self.num_environments, self._actions.array.shape[0]))
        self._cue = np.where(where[:, None], fresh, self._cue) if hasattr(self, "_cue") else fresh

    def _reward(self, chosen: Array) -> Array:
        if isinstance(self._actions, Continuous):
            return (1 - np.square(chosen - self._cue) / 4).mean(axis=1)
        chosen = chosen.reshape(self.num_environments, -1)
        if self._masked:
            allowed = np.take_along_axis(self._masks().reshape(self.num_environments, -1), chosen, axis=1)
            assert allowed[~self._ended].all(), "a forbidden choice was taken"
        return (chosen == self._cue).mean(axis=1)

    def _masks(self) -> NDArray[np.bool_]:
        masks = np.ones((self.num_environments, self._sizes[0]), bool)
        np.put_along_axis(masks, (self._cue + 1) % self._sizes[0], False, axis=1)
        return masks

    def _step(self, rewards: Array, ended: Array, *, first: Array) -> Step:
        if self._sizes:
            eyes = [np.eye(size)[self._cue[:, part]] for part, size in enumerate(self._sizes)]
            shown = np.concatenate(eyes, axis=1)
        else:
            shown = self._cue
        if self._delay:
            shown = shown * first[:, None]
        nothing = np.zeros_like(ended)
        kind = KindStep(
            observations={"cue": shown[:, None].astype(np.float32)},
            first=first[:, None],
            valid=~self._ended[:, None],
            alive=np.ones((self.num_environments, 1), bool),
            rewards=rewards[:, None].astype(np.float32),
            terminated=(nothing if self._truncates else ended)[:, None],
            truncated=(ended if self._truncates else nothing)[:, None],
            action_masks=self._masks()[:, None] if self._masked else None,
        )
        return Step({"agents": kind})


def _choices(actions: ActionSpace) -> tuple[int, ...]:
    match actions:
        case Discrete(choices=choices):
            return (choices,)
        case MultiDiscrete(choices=parts):
            return parts
        case Continuous():
            return ()
