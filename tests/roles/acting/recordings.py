"""Episodes that are played by hand and recorded, and what was shown meanwhile, kept as plainly as can be."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.episode_format import recorded_fields
from srlhpc.data.episode_writer import EpisodeWriter, RecordedPolicy
from srlhpc.environment import ArraySpec, Environment, zero_actions
from srlhpc.roles.acting.episode_recorder import EpisodeRecorder, RecordedSeat

OUTPUTS = {"value": ArraySpec((), "float32"), "two": ArraySpec((2,), "int64")}


@dataclass
class Sequence:
    """One agent's records of one episode: a mapping of names to values each, and what was seen last."""

    agent: int
    episode: int = -1
    total: float = float("nan")
    records: list[dict[str, Any]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    last_is_alive: bool = True


def seats(environment: Environment, agents: Mapping[str, tuple[int, ...]]) -> list[RecordedSeat]:
    """Policies by name, with their agents; all of the first kind."""
    kind = environment.spaces.kinds[0]
    fields = recorded_fields(PolicyShapes(kind, {}, OUTPUTS))
    return [RecordedSeat(policy, kind, places, fields) for policy, places in agents.items()]


def play(
    environment: Environment,
    path: Path,
    steps: int,
    agents: Mapping[str, tuple[int, ...]],
    *,
    playing: tuple[bool, ...] = (),
) -> dict[str, list[Sequence]]:
    """Records so many steps; actions, log-probabilities and outputs count columns and steps.

    Returns:
        The sequences of every policy, in the order in which they have to be in the file.
    """
    seated, kind = seats(environment, agents), environment.spaces.kinds[0]
    counted = np.array(playing or [True] * environment.num_environments)
    policies = {seat.policy: RecordedPolicy(kind.name, seat.fields) for seat in seated}
    kept = Kept(environment, agents, counted)
    with (
        open(path, "w+b") as file,
        EpisodeWriter(file, path, environment.spaces, policies, {"seed": 5}) as writer,
        closing(EpisodeRecorder(seated, environment.num_environments, writer, path.parent)) as recorder,
    ):
        step = environment.reset(1)
        recorder.begin(step)
        for t in range(steps):
            recorder.see(step, counted)
            replies, actions = {}, zero_actions(environment.spaces, environment.num_environments)
            for number, (policy, places) in enumerate(agents.items()):
                reply = answer(environment.num_environments, len(places), t + 100 * number)
                actions[kind.name][:, places] = reply.fields["actions"]
                replies[policy] = reply
            before = copy.deepcopy(step.kinds[kind.name])
            step = environment.step(actions)
            recorder.finish(step, replies)
            kept.add(before, replies, step)
    return kept.done


@dataclass
class Answer:
    fields: dict[str, Any]


def answer(num_environments: int, agents: int, number: int) -> Answer:
    rows = np.arange(num_environments * agents).reshape(num_environments, agents) + number
    fields = {"actions": rows % 4, "log_probs": -rows.astype(np.float32), "out.value": rows.astype(np.float32) / 2}
    return Answer({**fields, "out.two": np.stack([rows, rows + 1], axis=-1)})


class Kept:
    """What happened, by policy, environment and agent."""

    def __init__(self, environment: Environment, agents: Mapping[str, tuple[int, ...]], counted: Any) -> None:
        self._kind, self._agents, self._counted = environment.spaces.kinds[0], agents, counted
        self._open: dict[tuple[str, int, int], list[Sequence]] = {}
        self.done: dict[str, list[Sequence]] = {policy: [] for policy in agents}
        self._episodes = 0

    def add(self, before: Any, replies: Mapping[str, Answer], step: Any) -> None:
        now = step.kinds[self._kind.name]
        for policy, places in self._agents.items():
            for env, place in np.argwhere(before.valid[:, places]).tolist():
                self._add_record(policy, env, place, places[place], before, replies[policy], now)
        for episode in step.episodes:
            if self._counted[episode.environment]:
                self._finish(episode)

    def _add_record(self, policy: str, env: int, place: int, agent: int, before: Any, reply: Answer, now: Any) -> None:
        sequences = self._open.setdefault((policy, env, place), [])
        if before.first[env, agent]:
            sequences.append(Sequence(agent))
        record = {f"obs.{key}": array[env, agent].copy() for key, array in before.observations.items()}
        record |= {name: array[env, place] for name, array in reply.fields.items()}
        record |= {name: getattr(now, name)[env, agent] for name in ("rewards", "terminated", "truncated")}
        sequences[-1].records.append(record)
        if record["terminated"] or record["truncated"]:
            sequences[-1].last = {f"obs.{key}": array[env, agent].copy() for key, array in now.observations.items()}
            sequences[-1].last_is_alive = bool(now.alive[env, agent])

    def _finish(self, episode: Any) -> None:
        for policy, places in self._agents.items():
            for place, agent in enumerate(places):
                for sequence in self._open.pop((policy, episode.environment, place), []):
                    sequence.episode = self._episodes
                    sequence.total = episode.returns.get(self._kind.agents[agent], float("nan"))
                    self.done[policy].append(sequence)
        self._episodes += 1
