"""PettingZoo's AEC environments, in which one agent acts after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from envs._parallel import Parallel, Values
from envs._returned_values import one_flag, one_number
from srlhpc.environment import FloatArray
from srlhpc.errors import UserError


class Brought(NamedTuple):
    """What one agent's action brought."""

    rewards: Mapping[str, float]
    """Rewards of every agent that had not ended before."""
    cut: Mapping[str, bool]
    """Agents that have ended with it, and whether they were cut."""
    last: Values
    """Last observations of those that were cut."""


class Aec:
    """One AECEnv. `parallel` knows its agents' names and spaces, as of any environment of PettingZoo."""

    def __init__(self, simulator: Any, agents: Mapping[str, Any]) -> None:
        self.simulator = simulator
        self.possible_agents = tuple(agents)
        self._agents = dict(agents)
        self._parallel = Parallel(simulator, agents)
        self._ended: set[str] = set()
        """Agents whose end was told, some of which are still to be asked once."""

    def spaces(self, where: str) -> list[tuple[str, tuple[Any, Any]]]:
        """Every agent's observation and action space; errors as of `Parallel`."""
        return self._parallel.spaces(where)

    def state(self, shape: tuple[int, ...] | None = None) -> FloatArray:  # noqa: ARG002
        """Raises UserError: rules that would look at it need agents that act at once."""
        raise UserError("environment.state: is true, but agents that take turns are learnt from apart; leave it out")

    @property
    def agents(self) -> list[str]:
        """Agents that are in the game. PettingZoo keeps those that have ended until they are asked once more."""
        return [agent for agent in self._parallel.agents if agent not in self._ended]

    @property
    def mover(self) -> str:
        """Whose turn it is."""
        return self._parallel.name(self.simulator.agent_selection, "agent_selection")

    def begin(self, seed: int | None) -> None:
        """A new episode."""
        self._ended.clear()
        if seed is None:
            self.simulator.reset()
        else:
            self.simulator.reset(seed=seed)

    def reset(self, seed: int | None = None) -> tuple[Values, ...]:
        """A new episode. Returns what everybody sees, and infos, as a parallel environment would."""
        self.begin(seed)
        agents = self.agents
        return {agent: self.observe(agent) for agent in agents}, {agent: self.info(agent) for agent in agents}

    def observe(self, agent: str) -> Any:
        """What an agent sees now."""
        return self.simulator.observe(self._agents[agent])

    def info(self, agent: str) -> Any:
        """What else an agent is told."""
        return self.simulator.infos.get(self._agents[agent])

    def play(self, action: Any) -> Brought:
        """The turn of one agent. Those that have ended with it are gone behind it."""
        simulator, agents = self.simulator, self.agents
        simulator.step(action)
        rewards = {agent: self._reward(agent) for agent in agents}
        cut = {agent: not self._flag("terminations", agent) for agent in agents if self._is_over(agent)}
        last = {agent: self.observe(agent) for agent, is_cut in cut.items() if is_cut}
        # Each of those that have ended is asked once more, be it when its turn comes, and may only say that it has
        # nothing to say.
        while simulator.agents and self._is_over(self.mover):
            simulator.step(None)
        if not simulator.agents:
            # Whoever is gone without a word has left for good.
            cut = dict.fromkeys(agents, False) | cut
        self._ended.update(cut)
        return Brought(rewards, cut, last)

    def _reward(self, agent: str) -> float:
        return float(one_number(self.simulator.rewards.get(self._agents[agent], 0.0), f"the reward of '{agent}'"))

    def _is_over(self, agent: str) -> bool:
        return self._flag("terminations", agent) or self._flag("truncations", agent)

    def _flag(self, name: str, agent: str) -> bool:
        flags = getattr(self.simulator, name)
        return bool(one_flag(flags.get(self._agents[agent], False), f"{name} of '{agent}'"))
