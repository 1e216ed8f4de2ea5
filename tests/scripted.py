"""Environments that follow a script: ends, deaths and births come exactly when a test wants them.

What an agent observes tells where it is: (episode + 1, time + 1, agent + 1), all counted from 0, so zeros mean "not
there". The reward of record t is t + 1 for every agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import Field, PositiveInt

from srlhpc.environment import (
    Array,
    ArraySpec,
    Discrete,
    Environment,
    EpisodeTracker,
    Kind,
    SavedState,
    Spaces,
    Step,
    empty_kind_step,
)
from srlhpc.specs.named_modules import EnvironmentSettings

CHOICES = 4
End = Literal["terminated", "truncated"]


@dataclass(frozen=True)
class Script:
    """One episode.

    Attributes:
        steps: its records; 1 ends it at t = 0.
        end: how it ends for the agents that are there until then.
        presence: agent to the records it has, as half-open spans [start, stop); others are there all the time.
        cut: agents that are truncated when they leave before the end; others are terminated.
    """

    steps: int
    end: End = "terminated"
    presence: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    cut: Sequence[str] = ()

    def has(self, agent: str, time: int) -> bool:
        """Whether record `time` counts for the agent."""
        spans = self.presence.get(agent, ((0, self.steps),))
        return any(start <= time < min(stop, self.steps) for start, stop in spans)

    def cuts(self, agent: str, time: int) -> bool:
        """Whether an agent whose last record was the one before `time` is truncated."""
        return self.end == "truncated" if time == self.steps else agent in self.cut


class Settings(EnvironmentSettings):
    """Episode lengths as plain data, so that a spec can name `tests.scripted`."""

    steps: tuple[tuple[PositiveInt, ...], ...] = ((3,),)
    """Lengths of the episodes of each environment in turn, repeated; environment c uses entry c modulo their number."""
    end: End = "terminated"
    """How every episode ends."""
    agents: tuple[str, ...] = Field(default=("agent",), min_length=1)
    """Names of the agents, all of one kind `agent`."""

    def spaces(self) -> Spaces:
        return scripted_spaces({"agent": self.agents})


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    scripts = [[Script(length, settings.end) for length in lengths] for lengths in settings.steps]
    return Scripted([scripts[env % len(scripts)] for env in range(num_environments)], {"agent": settings.agents})


def scripted_spaces(agents: Mapping[str, Sequence[str]]) -> Spaces:
    observations = {"obs": ArraySpec((3,), "float32")}
    return Spaces(tuple(Kind(kind, tuple(names), observations, Discrete(CHOICES)) for kind, names in agents.items()))


class Scripted(Environment):
    """Plays `scripts[env]` one after the other, over and over. Seeds change nothing.

    Attributes:
        received: every valid (environment, episode, time, agent, action) so far.
    """

    def __init__(self, scripts: Sequence[Sequence[Script]], agents: Mapping[str, Sequence[str]] | None = None) -> None:
        self.spaces = scripted_spaces(agents or {"agent": ("agent",)})
        self.num_environments = len(scripts)
        self.received: list[tuple[int, int, int, str, int]] = []
        self._scripts = scripts
        self._now = {kind.name: empty_kind_step(kind, self.num_environments) for kind in self.spaces.kinds}
        self._episode = np.zeros(self.num_environments, np.int64)
        self._time = np.zeros(self.num_environments, np.int64)
        self._tracker = EpisodeTracker(
            self.num_environments, [agent for kind in self.spaces.kinds for agent in kind.agents]
        )

    def reset(self, seed: int) -> Step:  # noqa: ARG002
        self._episode[:] = 0
        self._time[:] = 0
        self._tracker.reset()
        self._look(None)
        return Step(self._now)

    def step(self, actions: Mapping[str, Array]) -> Step:
        was_valid = self._time < [self._script(env).steps for env in range(self.num_environments)]
        for env in np.flatnonzero(was_valid).tolist():
            for kind in self.spaces.kinds:
                for index, agent in enumerate(kind.agents):
                    if self._now[kind.name].valid[env, index]:
                        action = int(actions[kind.name][env, index])
                        assert 0 <= action < CHOICES
                        self.received.append((env, int(self._episode[env]), int(self._time[env]), agent, action))
        self._time[was_valid] += 1
        self._episode[~was_valid] += 1
        self._time[~was_valid] = 0
        valid = np.concatenate([now.valid for now in self._now.values()], axis=1)
        self._look(was_valid)
        over = np.array([self._time[env] == self._script(env).steps for env in range(self.num_environments)])
        rewards = np.concatenate([now.rewards for now in self._now.values()], axis=1)
        return Step(self._now, self._tracker.record(rewards, valid, over & was_valid))

    def _script(self, env: int) -> Script:
        scripts = self._scripts[env]
        return scripts[int(self._episode[env]) % len(scripts)]

    def _look(self, was_valid: Array | None) -> None:
        for kind in self.spaces.kinds:
            for index, agent in enumerate(kind.agents):
                for env in range(self.num_environments):
                    self._look_at(kind.name, index, agent, env, was_valid is not None and bool(was_valid[env]))

    def _look_at(self, kind: str, index: int, agent: str, env: int, has_last: bool) -> None:
        now, script, time, place = self._now[kind], self._script(env), int(self._time[env]), (env, index)
        is_over = time == script.steps
        has_acted = has_last and script.has(agent, time - 1)
        now.valid[place] = script.has(agent, time)
        now.first[place] = script.has(agent, time) and not has_acted
        is_cut = has_acted and not script.has(agent, time) and script.cuts(agent, time)
        now.alive[place] = script.has(agent, time) or (is_over and has_acted) or is_cut
        now.rewards[place] = time if has_acted else 0.0
        ended = has_acted and not script.has(agent, time)
        now.truncated[place] = is_cut
        now.terminated[place] = ended and not now.truncated[place]
        is_seen = now.alive[place] or has_acted
        now.observations["obs"][place] = (self._episode[env] + 1, time + 1, index + 1) if is_seen else 0.0

    def save_state(self) -> SavedState:
        last = self._was_valid()
        return {**self._tracker.save_state(), "episode": self._episode.copy(), "time": self._time.copy(), "last": last}

    def _was_valid(self) -> Array:
        # A record t > 0 always follows a valid one; record 0 follows a reset.
        return self._time > 0

    def load_state(self, state: SavedState) -> Step:
        self._tracker.load_state(state)
        self._episode[:] = state["episode"]
        self._time[:] = state["time"]
        self._look(state["last"])
        return Step(self._now)


class ScriptedParallel:
    """The same as a PettingZoo ParallelEnv; what it leaves out of its dictionaries is up to `quirks`.

    Args:
        quirks: `silent_exit`: leaving agents get no end flag; `keeps_ended`: ended agents stay in `agents`;
            `no_observation`: agent 0 never gets an observation.
    """

    def __init__(self, scripts: Sequence[Script], agents: Sequence[str], quirks: Sequence[str] = ()) -> None:
        self.possible_agents = list(agents)
        self.agents: list[str] = []
        self.render_mode = None
        self.received: list[tuple[int, int, str, int]] = []
        self._scripts, self._quirks = scripts, quirks
        self._episode, self._time = -1, 0
        self._ended: set[str] = set()

    def observation_space(self, agent: str) -> Any:  # noqa: ARG002
        from gymnasium.spaces import Box

        return Box(-np.inf, np.inf, (3,), np.float32)

    def action_space(self, agent: str) -> Any:  # noqa: ARG002
        from gymnasium.spaces import Discrete as GymnasiumDiscrete

        return GymnasiumDiscrete(CHOICES)

    @property
    def _script(self) -> Script:
        return self._scripts[self._episode % len(self._scripts)]

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self._episode = 0 if seed is not None else self._episode + 1
        self._time = 0
        self._ended = set()
        self.agents = [agent for agent in self.possible_agents if self._script.has(agent, 0)]
        return self._seen_by(self.agents), {}

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        assert set(actions) == set(self.agents)
        assert all(0 <= action < CHOICES for action in actions.values())
        script = self._script
        acted = [agent for agent in self.possible_agents if script.has(agent, self._time)]
        self.received += [(self._episode, self._time, agent, int(actions[agent])) for agent in acted]
        self._time += 1
        present = [agent for agent in self.possible_agents if script.has(agent, self._time)]
        gone = [agent for agent in acted if agent not in present]
        self._ended = (self._ended | set(gone)) - set(present)
        flagged = [] if "silent_exit" in self._quirks else self._ended if "keeps_ended" in self._quirks else gone
        truncated = {agent: script.cuts(agent, self._time) for agent in flagged}
        terminated = {agent: not is_cut for agent, is_cut in truncated.items()}
        self.agents = [
            a for a in self.possible_agents if a in present or (a in self._ended and "keeps_ended" in self._quirks)
        ]
        return self._seen_by([*present, *gone]), {a: float(self._time) for a in acted}, terminated, truncated, {}

    def _seen_by(self, agents: Sequence[str]) -> dict[str, Any]:
        seen = {
            agent: np.array([self._episode + 1, self._time + 1, self.possible_agents.index(agent) + 1], np.float32)
            for agent in agents
        }
        if "no_observation" in self._quirks:
            seen.pop(self.possible_agents[0], None)
        return seen

    def close(self) -> None:
        pass
