"""PettingZoo environments behind one face: parallel ones, with agents called by text and with checked returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs._gymnasium_declared import place_of_class
from envs._returned_values import SimulatorError
from srlhpc.environment import FloatArray
from srlhpc.errors import UserError, counted

Values = Mapping[str, Any]
"""Values by agent."""

_SPACES = ("observation_space", "observation_spaces", "action_space", "action_spaces")
"""Methods, and what PettingZoo's own look into."""
_RESET = ("observations", "infos")
_STEP = ("observations", "rewards", "terminations", "truncations", "infos")


def takes_turns(simulator: Any) -> bool:
    """Whether it is an AECEnv, and does not say that it can be made parallel."""
    metadata = getattr(simulator, "metadata", None) or {}
    return hasattr(simulator, "agent_iter") and not metadata.get("is_parallelizable", False)


def parallel_of(simulator: Any, where: str) -> Parallel:
    """A ParallelEnv, or an AECEnv that can be made one.

    Raises:
        UserError: its agents are not known beforehand.
    """
    if hasattr(simulator, "agent_iter"):
        from pettingzoo.utils import aec_to_parallel

        simulator = aec_to_parallel(simulator)
    return Parallel(simulator, named_agents(simulator, where))


def named_agents(simulator: Any, where: str) -> dict[str, Any]:
    """All agents that may ever appear, by their names as text.

    Raises:
        UserError: they are not known beforehand, or not told apart.
    """
    agents = list(getattr(simulator, "possible_agents", None) or ())
    if not agents:
        raise UserError(f"{where} has no possible_agents; the adapter must know all agents that may ever appear")
    names = [str(agent) for agent in agents]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{where}: two of its possible_agents are called '{twice}'; names must differ as text")
    return dict(zip(names, agents, strict=True))


class Parallel:
    """One ParallelEnv.

    Args:
        simulator: what is played.
        agents: the agents' names as text, and as the simulator calls them.
    """

    def __init__(self, simulator: Any, agents: Mapping[str, Any]) -> None:
        self.simulator = simulator
        self.possible_agents = tuple(agents)
        self._agents = dict(agents)
        self._names = {agent: name for name, agent in agents.items()}
        self._is_text = all(type(agent) is str for agent in self._names)

    @property
    def agents(self) -> list[str]:
        """Agents that are in the game."""
        agents = getattr(self.simulator, "agents", None)
        if agents is None:
            raise SimulatorError("it has no list `agents` of those that are in the game")
        return [self.name(agent, "agents") for agent in agents]

    def spaces(self, where: str) -> list[tuple[str, tuple[Any, Any]]]:
        """Every agent's observation and action space. Raises UserError where the simulator has none."""
        simulator = self.simulator
        try:
            return [
                (name, (simulator.observation_space(agent), simulator.action_space(agent)))
                for name, agent in self._agents.items()
            ]
        except AttributeError as error:
            if error.name not in _SPACES:
                raise
            raise UserError(
                f"{where}: {place_of_class(type(error.obj))} has no {error.name}; give it the methods "
                "observation_space(agent) and action_space(agent)"
            ) from error

    def name(self, agent: Any, where: str) -> str:
        """An agent's name as text. Raises SimulatorError if nobody is called so."""
        name = self._names.get(agent)
        if name is None:
            raise SimulatorError(f"{where} has agent {agent!r}, which is not in possible_agents: {_list(self._names)}")
        return name

    def reset(self, seed: int | None = None) -> tuple[Values, ...]:
        """Observations and infos. Raises SimulatorError if it returns anything else."""
        returned = self.simulator.reset() if seed is None else self.simulator.reset(seed=seed)
        checked = self._checked("reset", returned, _RESET)
        if not self.agents:
            raise SimulatorError("reset() has left no agent in the game: `agents` is empty")
        return checked

    def step(self, actions: Values) -> tuple[Values, ...]:
        """Observations, rewards, terminations, truncations, infos; errors as in `reset`."""
        taken = actions if self._is_text else {self._agents[name]: action for name, action in actions.items()}
        return self._checked("step", self.simulator.step(taken), _STEP)

    def state(self, shape: tuple[int, ...] | None = None) -> FloatArray:
        """What the whole environment is like now, float32.

        Args:
            shape: what it must have; None: any.

        Raises:
            SimulatorError: there is none, or it is no array of numbers of that shape.
        """
        try:
            found = np.asarray(self.simulator.state(), np.float32)
        except (AttributeError, NotImplementedError):
            raise SimulatorError("it has no state(); leave environment.state out") from None
        except (TypeError, ValueError) as error:
            raise SimulatorError(f"state() returned no array of numbers: {error}") from None
        if shape not in (None, found.shape):
            raise SimulatorError(f"state() returned shape {found.shape}, at first it was {shape}")
        return found

    def _checked(self, method: str, returned: Any, parts: Sequence[str]) -> tuple[Values, ...]:
        if not isinstance(returned, tuple | list) or len(returned) != len(parts):
            found = counted(len(returned), "value") if isinstance(returned, tuple | list) else type(returned).__name__
            raise SimulatorError(f"{method}() returned {found}, expected {len(parts)}: {', '.join(parts)}")
        return tuple(
            self._by_name(f"{method}()'s {part}", values) for part, values in zip(parts, returned, strict=True)
        )

    def _by_name(self, what: str, values: Any) -> Values:
        if not isinstance(values, Mapping):
            raise SimulatorError(f"{what} are no dict by agent but {type(values).__name__}")
        if self._is_text and values.keys() <= self._agents.keys():
            return values
        return {self.name(agent, what): value for agent, value in values.items()}


def _list(agents: Mapping[Any, Any]) -> str:
    names = [repr(agent) for agent in agents]
    return ", ".join(names if len(names) <= 8 else [*names[:8], "..."])
