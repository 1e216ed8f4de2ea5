"""MaMuJoCo's environments as PettingZoo's, of agents that may share a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from envs._parallel import Values
from srlhpc.environment import Array


class Body:
    """One environment of MaMuJoCo.

    Agents of as many joints are of one kind: who sees fewer values than another sees zeros behind them, and behind
    those all see as one-hot which of them they are.

    Args:
        simulator: a `MultiAgentMujocoEnv`.
    """

    def __init__(self, simulator: Any) -> None:
        for joints in [joints for near in simulator.k_dicts for joints in near.values()]:
            # The package sorts by label. Pusher has two joints of one, which stood as they happened to lie in memory.
            joints.sort(key=lambda joint: (joint.label, joint.act_ids))
        self._simulator = simulator
        self.possible_agents: list[str] = simulator.possible_agents
        self.metadata: Mapping[str, Any] = simulator.single_agent_env.metadata
        self.render_mode: str | None = simulator.single_agent_env.render_mode
        self._rows: dict[str, Array] = {}
        """What each agent sees of itself alone: zeros, then who it is."""
        by_joints: dict[int, list[str]] = {}
        for agent in self.possible_agents:
            by_joints.setdefault(simulator.action_space(agent).shape[0], []).append(agent)
        for agents in by_joints.values():
            most = max(simulator.observation_space(agent).shape[0] for agent in agents)
            seats = np.eye(len(agents), dtype=np.float32) if len(agents) > 1 else np.zeros((1, 0), np.float32)
            for agent, seat in zip(agents, seats, strict=True):
                self._rows[agent] = np.concatenate([np.zeros(most, np.float32), seat])

    @property
    def agents(self) -> list[str]:
        """Agents that are in the game: all, or none after the end."""
        agents: list[str] = self._simulator.agents
        return agents

    def observation_space(self, agent: str) -> Box[np.float32]:
        return Box(-np.inf, np.inf, self._rows[agent].shape)

    def action_space(self, agent: str) -> Any:
        return self._simulator.action_space(agent)

    def reset(self, seed: int | None = None) -> tuple[Values, Values]:
        observations, infos = self._simulator.reset(seed=seed)
        return self._seen(observations), infos

    def step(self, actions: Values) -> tuple[Values, Values, Values, Values, Values]:
        observations, *brought, infos = self._simulator.step(actions)
        rewards, terminated, truncated = brought
        return self._seen(observations), rewards, terminated, truncated, infos

    def _seen(self, observations: Values) -> Values:
        return {agent: self._seen_by(agent, raw) for agent, raw in observations.items()}

    def _seen_by(self, agent: str, raw: Array) -> Array:
        seen = self._rows[agent].copy()
        seen[: len(raw)] = raw
        return seen

    def state(self) -> Array:
        """What the environment that is shared out shows of itself."""
        state: Array = self._simulator.state()
        return state

    def render(self) -> Any:
        return self._simulator.render()

    def close(self) -> None:
        self._simulator.close()
