"""Any Gymnasium environment by its id: one agent, E copies in one process.

Where an environment registers a vector with next-step auto-reset and plain float observations, in which all arguments
mean what they mean for one copy, that is used; else the copies are stepped one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs._action_masks import write_mask
from envs._gymnasium_actions import ActionCodec, action_codec
from envs._gymnasium_making import Recipe, Wrapper
from envs._gymnasium_spaces import ObservationKeys, frames_per_second, observation_keys, picture
from envs._gymnasium_vectors import native_vector, vector_only
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, BoolArray, Environment, KindStep, Spaces, Step
from srlhpc.specs.modules import EnvironmentSettings

_REMEDY = (
    "turn it into one of them, as in environment: {..., wrappers: [gymnasium.wrappers.FlattenObservation]}, or by a "
    "wrapper of yours: wrappers: ['my_lab.wrappers:Numbers']"
)


class Settings(EnvironmentSettings):
    """A Gymnasium environment."""

    id: str
    """Registered id, for example `CartPole-v1`; `module:Name-v0` imports the module first."""
    kwargs: dict[str, Any] = {}
    """Further arguments of `gymnasium.make`. `vectorization_mode: sync` steps the copies one after the other where the
    environment has a vector of its own, `vector_entry_point` insists on that."""
    wrappers: tuple[Wrapper, ...] = ()
    """Wrappers around each copy, the innermost first: import paths, as `gymnasium.wrappers.FlattenObservation`, or
    `{path: {argument: value}}`."""


def build(settings: Settings, copies: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: the id is not known, its packages are missing, or its spaces are not understood.
    """
    return from_recipe(Recipe(settings.id, settings.kwargs, settings.wrappers, render), copies, seed)


def from_recipe(recipe: Recipe, copies: int, seed: int) -> Environment:
    """`copies` copies of a registered environment; errors as in `build`."""
    if (vector := vector_only(recipe, copies)) is not None:
        observations = observation_keys(vector.single_observation_space, recipe.where, _REMEDY)
        codec = action_codec(vector.single_action_space, recipe.where)
        spaces = single_agent_spaces(observations.specs, codec.space)
        return GymnasiumEnvironment(_Vectorised(vector, observations), spaces, codec, copies)
    first = recipe.simulator()
    observations = observation_keys(first.observation_space, recipe.where, _REMEDY)
    codec = action_codec(first.action_space, recipe.where)
    _, info = first.reset(seed=seed)
    has_masks = "action_mask" in info
    spaces = single_agent_spaces(observations.specs, codec.space, has_action_masks=has_masks)
    # Other observations are no faster in a vector, whose masks are not known.
    may_be_native = observations.is_one_plain_array or recipe.demands_native
    vector = native_vector(recipe, first, copies) if may_be_native and not has_masks else None
    if vector is not None:
        first.close()
        return GymnasiumEnvironment(_Vectorised(vector, observations), spaces, codec, copies)
    simulators = [first, *(recipe.simulator() for _ in range(copies - 1))]
    return GymnasiumEnvironment(_Looped(simulators, observations, codec), spaces, codec, copies)


class GymnasiumEnvironment(Environment):
    """Single-agent simulators behind the contract."""

    def __init__(self, simulators: _Vectorised | _Looped, spaces: Spaces, codec: ActionCodec, copies: int) -> None:
        self.spaces = spaces
        self.copies = copies
        self._simulators = simulators
        self._codec = codec
        self._records = SingleAgentRecords(spaces, copies)

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


class _Vectorised:
    """A simulator that steps all copies itself, with next-step auto-reset."""

    def __init__(self, vector: Any, observations: ObservationKeys) -> None:
        self._vector, self._observations = vector, observations

    def reset(self, seed: int, now: KindStep) -> None:
        self._observe(self._vector.reset(seed=seed)[0], now)

    def step(self, actions: Array, ended: BoolArray, now: KindStep) -> None:
        observations, rewards, terminated, truncated, _ = self._vector.step(actions)
        self._observe(observations, now)
        now.rewards[:, 0] = rewards
        now.terminated[:, 0] = terminated
        now.truncated[:, 0] = truncated
        if np.count_nonzero(ended):
            now.rewards[ended] = 0.0
            now.terminated[ended] = now.truncated[ended] = False

    def _observe(self, raw: Any, now: KindStep) -> None:
        if self._observations.is_one_plain_array:
            now.observations["obs"][:, 0] = raw
            return
        from gymnasium.vector.utils import iterate

        for copy, one in enumerate(iterate(self._vector.observation_space, raw)):
            self._observations.write(one, now.observations, (copy, 0))

    def render(self) -> Array | None:
        return picture(self._vector)

    @property
    def render_fps(self) -> float | None:
        return frames_per_second(self._vector)

    def close(self) -> None:
        self._vector.close()


class _Looped:
    """Simulators stepped one after the other."""

    def __init__(self, simulators: Sequence[Any], observations: ObservationKeys, codec: ActionCodec) -> None:
        self._simulators = simulators
        self._observations = observations
        self._codec = codec

    def reset(self, seed: int, now: KindStep) -> None:
        seeds = np.random.SeedSequence(seed).generate_state(len(self._simulators)).tolist()
        for copy, simulator in enumerate(self._simulators):
            self._observe(copy, now, *simulator.reset(seed=seeds[copy]))

    def step(self, actions: Array, ended: BoolArray, now: KindStep) -> None:
        outcomes = []
        for copy, (simulator, action, is_over) in enumerate(
            zip(self._simulators, self._codec.one_by_one(actions), ended.tolist(), strict=True)
        ):
            if is_over:
                raw, info = simulator.reset()
                outcomes.append((0.0, False, False))
            else:
                raw, *outcome, info = simulator.step(action)
                outcomes.append(tuple(outcome))
            self._observe(copy, now, raw, info)
        now.rewards[:, 0], now.terminated[:, 0], now.truncated[:, 0] = zip(*outcomes, strict=True)

    def _observe(self, copy: int, now: KindStep, raw: Any, info: Mapping[str, Any]) -> None:
        self._observations.write(raw, now.observations, (copy, 0))
        if now.action_masks is not None:
            write_mask(info.get("action_mask"), self._codec.space, now.action_masks[copy, 0])

    def render(self) -> Array | None:
        return picture(self._simulators[0])

    @property
    def render_fps(self) -> float | None:
        return frames_per_second(self._simulators[0])

    def close(self) -> None:
        for simulator in self._simulators:
            simulator.close()
