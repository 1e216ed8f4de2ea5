"""One agent, E environments: simulators with Gymnasium's spaces and methods behind the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from envs._action_masks import MASK, has_masks, split_mask
from envs._gymnasium_actions import ActionCodec, action_codec
from envs._gymnasium_simulators import Looped, Vectorised
from envs._gymnasium_spaces import ObservationKeys, observation_keys
from envs._info_metrics import InfoMetrics
from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from srlhpc.environment import Array, Environment, Step


class Understood(NamedTuple):
    """A simulator's spaces, as they are read and written."""

    observations: ObservationKeys
    codec: ActionCodec
    mask_in_observation: bool

    def is_masked_by(self, info: Mapping[str, Any]) -> bool:
        """Whether the first reset, whose info this is, gave a mask."""
        return self.mask_in_observation or MASK in info


def understood(observation_space: Any, action_space: Any, where: str, remedy: str, action_remedy: str) -> Understood:
    """How spaces of one environment are read and written.

    Args:
        observation_space: of Gymnasium.
        action_space: of Gymnasium.
        where: what messages call the environment.
        remedy: what messages advise where observations are not understood.
        action_remedy: what messages advise where actions are not understood.

    Raises:
        UserError: they are not understood.
    """
    codec = action_codec(action_space, where, action_remedy)
    shown, mask_in_observation = split_mask(observation_space, codec.space, where)
    return Understood(observation_keys(shown, where, remedy), codec, mask_in_observation)


def from_vector(
    vector: Any, num_environments: int, spaces: Understood, info: Mapping[str, Any], metrics: Sequence[str] = ()
) -> Environment:
    """Environments that a vector with next-step auto-reset steps.

    Args:
        vector: Gymnasium's methods for all of them.
        num_environments: E.
        spaces: of one environment.
        info: of its first reset.
        metrics: names in the infos of episodes that end.
    """
    simulators = Vectorised(vector, num_environments, *spaces, InfoMetrics(metrics))
    return GymnasiumEnvironment(simulators, spaces, num_environments, masked=spaces.is_masked_by(info))


def from_simulators(
    simulators: Sequence[Any], spaces: Understood, info: Mapping[str, Any], where: str, metrics: Sequence[str] = ()
) -> Environment:
    """Environments that are stepped one after the other; `info` is that of the first one's first reset.

    Raises:
        UserError: there is a mask of actions that cannot be masked.
    """
    masked = spaces.mask_in_observation or has_masks([info], spaces.codec.space, where)
    looped = Looped(simulators, *spaces, InfoMetrics(metrics))
    return GymnasiumEnvironment(looped, spaces, len(simulators), masked=masked)


class GymnasiumEnvironment(Environment):
    """Single-agent simulators behind the contract."""

    def __init__(
        self,
        simulators: Vectorised | Looped,
        spaces: Understood,
        num_environments: int,
        *,
        masked: bool,
    ) -> None:
        self._codec = spaces.codec
        self.spaces = single_agent_spaces(spaces.observations.specs, self._codec.space, has_action_masks=masked)
        self.num_environments = num_environments
        self._simulators = simulators
        self._records = SingleAgentRecords(self.spaces, num_environments)

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
        step = self._records.finish()
        return Step(step.kinds, self._simulators.metrics.of(step.episodes)) if step.episodes else step

    def render(self) -> Array | None:
        return self._simulators.render()

    @property
    def render_fps(self) -> float | None:
        return self._simulators.render_fps

    def close(self) -> None:
        self._simulators.close()
