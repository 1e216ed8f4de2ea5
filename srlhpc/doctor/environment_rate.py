"""How fast an environment plays at random, what memory it takes meanwhile, and what its episodes are like."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from srlhpc.doctor.findings import Finding, ok, warning
from srlhpc.doctor.random_play import random_actions
from srlhpc.environment import Environment, Episode
from srlhpc.errors import counted

_RATE_SECONDS = 4.0
_WARM_STEPS = 20
_LEAK_BYTES = 20e6


@dataclass
class _Episodes:
    """What is told of episodes, without keeping them: they would be the memory that is measured."""

    count: int = 0
    shortest: int = 0
    longest: int = 0
    metrics: set[str] = field(default_factory=set)
    _sum: float = 0.0
    _returns: int = 0

    def add(self, episode: Episode) -> None:
        self.shortest = min(self.shortest, episode.steps) if self.count else episode.steps
        self.longest = max(self.longest, episode.steps)
        self.count += 1
        self.metrics.update(episode.metrics)
        self._sum += sum(episode.returns.values())
        self._returns += len(episode.returns)

    @property
    def mean_return(self) -> float:
        return self._sum / self._returns if self._returns else 0.0


class Measured(NamedTuple):
    """What a while of random play took and gave."""

    steps: int
    """Steps of all environments together."""
    wall: float
    """Seconds in `step`."""
    cpu: float
    """Seconds of all cores meanwhile."""
    grown: float
    """Bytes of memory."""
    episodes: _Episodes
    terminated: int
    truncated: int


def measure(environment: Environment) -> Measured:
    """Plays at random for a while."""
    random = np.random.default_rng(1)
    now = environment.reset(1)
    for _ in range(_WARM_STEPS):
        now = environment.step(random_actions(environment.spaces, now, random))
    before, begun = memory(), time.monotonic()
    steps, wall, cpu, terminated, truncated = 0, 0.0, 0.0, 0, 0
    episodes = _Episodes()
    while time.monotonic() < begun + _RATE_SECONDS:
        actions = random_actions(environment.spaces, now, random)
        at, used = time.perf_counter(), time.process_time()
        now = environment.step(actions)
        wall, cpu = wall + time.perf_counter() - at, cpu + time.process_time() - used
        steps += environment.num_environments
        for episode in now.episodes:
            episodes.add(episode)
        terminated += int(sum(kind.terminated.sum() for kind in now.kinds.values()))
        truncated += int(sum(kind.truncated.sum() for kind in now.kinds.values()))
    return Measured(steps, wall, cpu, memory() - before, episodes, terminated, truncated)


def rate(environment: Environment, measured: Measured) -> Iterator[Finding]:
    """Steps a second of one core, and what memory did meanwhile."""
    steps, wall, cpu, grown, *_ = measured
    yield ok(
        "rate",
        f"{steps / wall:,.0f} steps/s of {counted(environment.num_environments, 'environment')} together, "
        f"{1e6 * cpu / steps:,.1f} us of CPU a step; the peak of memory is {_peak() / 1e6:,.0f} MB",
    )
    if cpu > 1.3 * wall:
        yield warning(
            "threads",
            f"it computes on {cpu / wall:.1f} cores",
            "actors have one each: let its libraries use one thread (OMP_NUM_THREADS=1 is set in runs)",
        )
    if grown > _LEAK_BYTES:
        yield warning(
            "memory",
            f"grew by {grown / 1e6:,.0f} MB in {counted(steps, 'step')}",
            "does something keep what it needs no more? a long run would fill the node",
        )


def episodes_of(measured: Measured, num_environments: int) -> Finding:
    """How long episodes of random play are, how they end, and what they yield."""
    episodes, steps = measured.episodes, measured.steps // num_environments
    if not episodes.count:
        return warning(
            "episodes",
            f"none ended in {counted(steps, 'step')} of {counted(num_environments, 'environment')}",
            "is that meant? what stops at a return, and evaluators, need ends: cut long episodes (truncated)",
        )
    metrics_text = f"; metrics: {', '.join(sorted(episodes.metrics))}" if episodes.metrics else ""
    return ok(
        "episodes",
        f"{counted(episodes.count, 'episode')} of random play, of {episodes.shortest:,} to {episodes.longest:,} steps; "
        f"agents were terminated {counted(measured.terminated, 'time')}, truncated "
        f"{counted(measured.truncated, 'time')}; mean return {episodes.mean_return:.4g}{metrics_text}",
    )


def memory() -> float:
    """Bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
