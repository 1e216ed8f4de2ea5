"""A simulator that is only as slow, as large and as many as it is told to be: for measuring the system alone.

Nothing depends on the actions; every record is rewarded with 1.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveInt

from srlhpc.environment import (
    ActionSpace,
    Array,
    ArraySpec,
    Continuous,
    Discrete,
    Environment,
    EpisodeTracker,
    Kind,
    MultiDiscrete,
    SavedState,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.spec import Spec

KIND = "agent"
_FRAMES = 16
_FRAMES_BYTES = 1 << 26


class DiscreteActions(Spec):
    """One choice."""

    kind: Literal["discrete"] = "discrete"
    choices: Annotated[int, Field(ge=2)] = 4
    """Actions to choose from."""

    def space(self) -> ActionSpace:
        return Discrete(self.choices)


class MultiDiscreteActions(Spec):
    """Several choices at once."""

    kind: Literal["multi_discrete"] = "multi_discrete"
    choices: Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
    """Actions to choose from, for each choice."""

    def space(self) -> ActionSpace:
        return MultiDiscrete(self.choices)


class ContinuousActions(Spec):
    """A real vector."""

    kind: Literal["continuous"] = "continuous"
    size: PositiveInt
    """Elements of the vector."""

    def space(self) -> ActionSpace:
        return Continuous(self.size)


Actions = Annotated[DiscreteActions | MultiDiscreteActions | ContinuousActions, Field(discriminator="kind")]


class Settings(EnvironmentSettings):
    """What it looks like and how long it takes."""

    step_seconds: NonNegativeFloat = 0.0
    """Seconds that one step of one environment takes; the environments of a group are stepped one after the other."""
    work: Literal["cpu", "sleep"] = "cpu"
    """How a step spends its time: computing, or asleep as if the simulator ran elsewhere."""
    observation_shape: tuple[PositiveInt, ...] = (8,)
    """Shape of what an agent sees."""
    observation_dtype: Literal["float32", "uint8"] = "float32"
    """Type of its elements."""
    actions: Actions = DiscreteActions()
    """What an agent can do."""
    agents: PositiveInt = 1
    """Agents of one environment, all of one kind."""
    episode_steps: PositiveInt = 200
    """Steps of an episode, which is then cut off; an environment's first is shorter, so that environments do not end
    together."""

    def spaces(self) -> Spaces:
        names = (KIND,) if self.agents == 1 else tuple(f"{KIND}_{number}" for number in range(self.agents))
        seen = {"obs": ArraySpec(self.observation_shape, self.observation_dtype)}
        return Spaces((Kind(KIND, names, seen, self.actions.space()),))


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    return Synthetic(settings, num_environments)


class Synthetic(Environment):
    """Shows a few random frames in turn, drawn at the reset, so that showing one costs nothing."""

    def __init__(self, settings: Settings, num_environments: int) -> None:
        self.spaces = settings.spaces()
        self.num_environments = num_environments
        self._kind = self.spaces.kinds[0]
        self._seconds, self._sleeps = settings.step_seconds * num_environments, settings.work == "sleep"
        self._episode_steps = settings.episode_steps
        self._now = empty_kind_step(self._kind, num_environments)
        self._now.alive[:] = True
        self._kinds = {KIND: self._now}
        self._tracker = EpisodeTracker(num_environments, self._kind.agents)
        self._time = np.zeros(num_environments, np.int64)
        self._ended = np.zeros(num_environments, np.bool_)
        self._frames: Array = np.zeros((1, *self._now.observations["obs"].shape))
        self._seed, self._frame = 0, 0

    def reset(self, seed: int) -> Step:
        self._draw_frames(seed)
        self._frame = 0
        self._time[:] = np.arange(self.num_environments) * self._episode_steps // self.num_environments
        self._ended[:] = False
        self._tracker.reset()
        self._now.rewards[:] = 0.0
        self._now.first[:] = True
        self._show()
        return Step(self._kinds)

    def step(self, actions: Mapping[str, Array]) -> Step:  # noqa: ARG002 (nothing depends on them)
        self._spend()
        was_valid = ~self._ended
        self._now.first[:] = self._ended[:, None]
        self._now.rewards[:] = was_valid[:, None]
        self._time += 1
        self._time *= was_valid
        np.equal(self._time, self._episode_steps, out=self._ended)
        self._frame = (self._frame + 1) % len(self._frames)
        self._show()
        return Step(self._kinds, self._tracker.record(self._now.rewards, was_valid, self._ended))

    def _spend(self) -> None:
        if not self._seconds:
            return
        if self._sleeps:
            time.sleep(self._seconds)
            return
        # The thread's own time: what other processes take from the core is no work of this one.
        end = time.thread_time() + self._seconds
        while time.thread_time() < end:
            pass

    def _show(self) -> None:
        self._now.observations["obs"] = self._frames[self._frame]
        self._now.truncated[:] = self._ended[:, None]
        np.logical_not(self._now.truncated, out=self._now.valid)

    def _draw_frames(self, seed: int) -> None:
        spec = self._kind.observations["obs"]
        shape = (self.num_environments, len(self._kind.agents), *spec.shape)
        frames = max(2, min(_FRAMES, _FRAMES_BYTES // (int(np.prod(shape)) * np.dtype(spec.dtype).itemsize)))
        random = np.random.default_rng(seed)
        self._seed = seed
        if spec.dtype == "uint8":
            self._frames = random.integers(256, size=(frames, *shape), dtype=np.uint8)
        else:
            self._frames = random.standard_normal((frames, *shape), np.float32)

    def save_state(self) -> SavedState:
        return {
            **self._tracker.save_state(),
            "seed": np.array(self._seed, np.uint64),
            "frame": np.array(self._frame),
            "time": self._time.copy(),
            "ended": self._ended.copy(),
            "first": self._now.first.copy(),
            "rewards": self._now.rewards.copy(),
        }

    def load_state(self, state: SavedState) -> Step:
        self._tracker.load_state(state)
        self._draw_frames(int(state["seed"]))
        self._frame = int(state["frame"])
        self._time[:] = state["time"]
        self._ended[:] = state["ended"]
        self._now.first[:] = state["first"]
        self._now.rewards[:] = state["rewards"]
        self._show()
        return Step(self._kinds)
