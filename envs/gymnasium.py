"""Any Gymnasium environment by its id: one agent, E copies in one process.

Where Gymnasium registers a vectorised version with next-step auto-reset and plain float observations, that is used;
else the copies are stepped one after the other.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs._action_masks import write_mask
from envs._gymnasium_actions import ActionCodec, action_codec
from envs._gymnasium_spaces import ObservationKeys, frames_per_second, observation_keys, picture
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, BoolArray, Environment, KindStep, Spaces, Step
from srlhpc.objects import UserError
from srlhpc.specs.modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """A Gymnasium environment."""

    id: str
    """Registered id, for example `CartPole-v1`; `module:Name-v0` imports the module first."""
    kwargs: dict[str, Any] = {}
    """Further arguments of `gymnasium.make`."""


def build(settings: Settings, copies: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: the id is not known, its packages are missing, or its spaces are not understood.
    """
    return from_id(settings.id, settings.kwargs, copies, seed, render)


def from_id(name: str, kwargs: Mapping[str, Any], copies: int, seed: int, render: bool) -> Environment:
    """`copies` copies of a registered environment; errors as in `build`."""
    arguments = {**kwargs, "render_mode": "rgb_array"} if render else dict(kwargs)
    where = f"environment '{name}'"
    first = _make(name, arguments)
    observations = observation_keys(first.observation_space, where)
    codec = action_codec(first.action_space, where)
    _, info = first.reset(seed=seed)
    has_masks = "action_mask" in info
    spaces = single_agent_spaces(observations.specs, codec.space, has_action_masks=has_masks)
    is_plain = not has_masks and observations.is_one_plain_array
    vector = _make_native(first.spec, arguments, copies) if is_plain else None
    if vector is not None:
        first.close()
        return GymnasiumEnvironment(_Vectorised(vector), spaces, codec, copies)
    simulators = [first, *(_make(name, arguments) for _ in range(copies - 1))]
    return GymnasiumEnvironment(_Looped(simulators, observations, codec), spaces, codec, copies)


def _make(name: str, arguments: Mapping[str, Any]) -> Any:
    import gymnasium

    try:
        return gymnasium.make(name, disable_env_checker=True, **arguments)
    except gymnasium.error.UnregisteredEnv as error:
        near = difflib.get_close_matches(name, list(gymnasium.registry), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(repr(other) for other in near)}?" if near else str(error)
        raise UserError(f"Gymnasium knows no environment '{name}'; {hint}") from None
    except gymnasium.error.DeprecatedEnv as error:
        raise UserError(f"environment '{name}': {error}") from None
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise UserError(f"environment '{name}' needs a package that is not installed: {error}") from None
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise UserError(f"environment.kwargs of '{name}': {error}") from None


def _make_native(spec: Any, arguments: Mapping[str, Any], copies: int) -> Any:
    import gymnasium
    from gymnasium.vector import AutoresetMode

    if spec is None or spec.vector_entry_point is None or spec.additional_wrappers:
        return None
    vector = gymnasium.make_vec(
        spec.id, num_envs=copies, vectorization_mode="vector_entry_point", **{**spec.kwargs, **arguments}
    )
    if vector.metadata.get("autoreset_mode") is AutoresetMode.NEXT_STEP:
        return vector
    vector.close()
    return None


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

    def __init__(self, vector: Any) -> None:
        self._vector = vector

    def reset(self, seed: int, now: KindStep) -> None:
        now.observations["obs"][:, 0] = self._vector.reset(seed=seed)[0]

    def step(self, actions: Array, ended: BoolArray, now: KindStep) -> None:  # noqa: ARG002
        observations, rewards, terminated, truncated, _ = self._vector.step(actions)
        now.observations["obs"][:, 0] = observations
        now.rewards[:, 0] = rewards
        now.terminated[:, 0] = terminated
        now.truncated[:, 0] = truncated

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
