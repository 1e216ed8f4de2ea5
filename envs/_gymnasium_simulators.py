"""E environments of Gymnasium's that are reset and stepped together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from envs._action_masks import MASK, unexpected_mask, write_mask
from envs._gymnasium_actions import ActionCodec
from envs._gymnasium_pictures import frames_per_second, picture
from envs._gymnasium_spaces import ObservationKeys
from envs._info_metrics import InfoMetrics
from envs._observation_checks import missing_part
from envs._old_gym import of_step
from envs._returned_values import SimulatorError, checked_info, column, one_flag, one_number
from srlhpc.environment import Array, BoolArray, KindStep

_ALL = (slice(None), 0)
"""Index of all environments' only agent."""


class Vectorised:
    """A simulator that steps all environments itself, with next-step auto-reset; arguments as of `Looped`."""

    def __init__(
        self,
        vector: Any,
        num_environments: int,
        observations: ObservationKeys,
        codec: ActionCodec,
        mask_in_observation: bool,
        metrics: InfoMetrics | None = None,
    ) -> None:
        from gymnasium.vector.utils import batch_space

        self._vector, self._num_environments, self._observations, self._codec = (
            vector,
            num_environments,
            observations,
            codec,
        )
        self._mask_in_observation = mask_in_observation
        self.metrics = metrics or InfoMetrics(())
        self._space = batch_space(vector.single_observation_space, num_environments)
        self._batch = observations.of_batch(self._space) if observations.are_plain else None

    def reset(self, seed: int, now: KindStep) -> None:
        observations, info = self._vector.reset(seed=seed)
        now.terminated[:] = now.truncated[:] = False
        self._observe(observations, info, now)

    def step(self, actions: Array, ended: BoolArray, now: KindStep) -> None:
        observations, rewards, terminated, truncated, info = self._vector.step(actions)
        now.rewards[:, 0] = column(rewards, self._num_environments, "biuf", "rewards")
        now.terminated[:, 0] = column(terminated, self._num_environments, "b", "terminated")
        now.truncated[:, 0] = column(truncated, self._num_environments, "b", "truncated")
        if np.count_nonzero(ended):
            now.rewards[ended] = 0.0
            now.terminated[ended] = now.truncated[ended] = False
        self._observe(observations, info, now)
        for env in np.flatnonzero((now.terminated | now.truncated)[:, 0]).tolist():
            self.metrics.take_of_vector(env, info)

    def _observe(self, raw: Any, info: Any, now: KindStep) -> None:
        info = checked_info(info)
        if self._batch is not None:
            self._batch.write(raw, now.observations, _ALL)
            if now.action_masks is None and MASK not in info:
                return
        each: Iterable[Any] = (None,) * self._num_environments
        if self._batch is None or self._mask_in_observation:
            from gymnasium.vector.utils import iterate

            each = iterate(self._space, raw)
        waits = (now.terminated | now.truncated)[:, 0]
        for env, one in enumerate(each):
            try:
                if self._batch is None:
                    self._observations.write(one, now.observations, (env, 0))
                self._write_mask(env, one, info, now, acts=not waits[env])
            except SimulatorError as error:
                raise SimulatorError(f"environment {env}: {error}") from None

    def _write_mask(self, env: int, one: Any, info: Mapping[str, Any], now: KindStep, *, acts: bool) -> None:
        if now.action_masks is None:
            if MASK in info:
                raise unexpected_mask()
            return
        if self._mask_in_observation:
            mask = one[MASK]
        else:
            mask = info[MASK][env] if MASK in info and _is_given(info, env) else None
        write_mask(mask, self._codec.space, now.action_masks[env, 0], acts=acts)

    def render(self) -> Array | None:
        return picture(self._vector, of_first=True)

    @property
    def render_fps(self) -> float | None:
        return frames_per_second(self._vector)

    def close(self) -> None:
        self._vector.close()


def _is_given(info: Mapping[str, Any], env: int) -> bool:
    """Whether this environment gave a mask, as Gymnasium's vectors say."""
    return f"_{MASK}" not in info or bool(info[f"_{MASK}"][env])


class Looped:
    """Simulators stepped one after the other.

    Args:
        simulators: one for each environment.
        observations: what they show.
        codec: what they take.
        mask_in_observation: whether observations are Dicts that hold the action mask.
        metrics: what infos say of episodes that end; None: nothing is asked of them.
    """

    def __init__(
        self,
        simulators: Sequence[Any],
        observations: ObservationKeys,
        codec: ActionCodec,
        mask_in_observation: bool,
        metrics: InfoMetrics | None = None,
    ) -> None:
        self._simulators = simulators
        self.metrics = metrics or InfoMetrics(())
        self._observations = observations
        self._codec = codec
        self._mask_in_observation = mask_in_observation

    def reset(self, seed: int, now: KindStep) -> None:
        seeds = np.random.SeedSequence(seed).generate_state(len(self._simulators)).tolist()
        for env, simulator in enumerate(self._simulators):
            raw, info = simulator.reset(seed=seeds[env])
            self._observe(env, now, raw, info, acts=True)

    def step(self, actions: Array, ended: BoolArray, now: KindStep) -> None:
        outcomes = []
        for env, (simulator, action, is_over) in enumerate(
            zip(self._simulators, self._codec.one_by_one(actions), ended.tolist(), strict=True)
        ):
            if is_over:
                raw, info = simulator.reset()
                outcome = (0.0, False, False)
            else:
                try:
                    raw, reward, terminated, truncated, info = simulator.step(action)
                except ValueError as error:
                    raise of_step(error) from error
                outcome = _outcome(env, reward, terminated, truncated)
            outcomes.append(outcome)
            has_ended = outcome[1] or outcome[2]
            self._observe(env, now, raw, info, acts=not has_ended)
            if has_ended:
                self.metrics.take(env, info)
        now.rewards[:, 0], now.terminated[:, 0], now.truncated[:, 0] = zip(*outcomes, strict=True)

    def _observe(self, env: int, now: KindStep, raw: Any, info: Any, *, acts: bool) -> None:
        try:
            info = checked_info(info)
            self._observations.write(raw, now.observations, (env, 0))
            if now.action_masks is not None:
                write_mask(self._mask(raw, info), self._codec.space, now.action_masks[env, 0], acts=acts)
            elif MASK in info:
                raise unexpected_mask()
        except SimulatorError as error:
            raise SimulatorError(f"environment {env}: {error}") from None

    def _mask(self, raw: Any, info: Mapping[str, Any]) -> Any:
        if not self._mask_in_observation:
            return info.get(MASK)
        if MASK not in raw:
            raise missing_part(raw, (MASK,))
        return raw[MASK]

    def render(self) -> Array | None:
        return picture(self._simulators[0])

    @property
    def render_fps(self) -> float | None:
        return frames_per_second(self._simulators[0])

    def close(self) -> None:
        for simulator in self._simulators:
            simulator.close()


def _outcome(env: int, reward: Any, terminated: Any, truncated: Any) -> tuple[Any, bool, bool]:
    try:
        return one_number(reward, "the reward"), one_flag(terminated, "terminated"), one_flag(truncated, "truncated")
    except SimulatorError as error:
        raise SimulatorError(f"environment {env}: {error}") from None
