"""Steps per second of hide-and-seek, whole and physics alone, and where the time of a step goes.

Physics alone is what MuJoCo needs for the same states: 15 substeps and one forward pass. Times are CPU time of one
process; actions are uniformly random.

    python benchmarks/hide_and_seek.py [--environments 16] [--steps 300] [--repeats 3]
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import click
import mujoco
import numpy as np

from envs.hide_and_seek.environment import HideAndSeek
from envs.hide_and_seek.game import Game
from envs.hide_and_seek.grab import Grabs
from envs.hide_and_seek.lock import Locks
from envs.hide_and_seek.observations import Observer
from envs.hide_and_seek.rays import Rays
from envs.hide_and_seek.settings import KIND, Settings
from envs.hide_and_seek.world import World
from srlhpc.environment import Array

CASES: dict[str, dict[str, Any]] = {
    "quadrant, 2 v 2": {"scenario": {"kind": "quadrant"}, "hiders": [2, 2], "seekers": [2, 2]},
    "random walls, 1-3 v 1-3": {},
    "random walls, 3 v 3": {"hiders": [3, 3], "seekers": [3, 3]},
    "random walls, 3 v 3, x2": {"hiders": [3, 3], "seekers": [3, 3], "map_scale": 2.0},
}
PARTS: dict[str, tuple[type, str]] = {
    "physics, 15 substeps and where geoms are": (World, "step"),
    "ray queries": (Rays, "_ask"),
    "rays, the rest": (Rays, "cast"),
    "cones": (Game, "perceive"),
    "grabs": (Grabs, "update"),
    "locks": (Locks, "update"),
    "actions, the rest": (Game, "act"),
    "new worlds": (HideAndSeek, "_restart"),
    "observations": (Observer, "write"),
}


class Stopwatch:
    """Adds up the time of methods, each without that of the others inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner: list[float] = [0.0]

    def timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            start = time.thread_time()
            try:
                return method(*arguments, **named)
            finally:
                taken = time.thread_time() - start
                self.seconds[name] += taken - self._inner.pop()
                self._inner[-1] += taken

        return call


def ready(settings: dict[str, Any], num_environments: int, steps: int, seed: int) -> tuple[HideAndSeek, Array]:
    """An environment after some steps, and actions `[steps, E, A, 5]`."""
    environment = HideAndSeek(
        Settings.model_validate({"factory": "hide_and_seek", **settings}), num_environments, 0, False
    )
    environment.reset(seed)
    agents = len(environment.spaces.kinds[0].agents)
    actions = np.random.default_rng(seed).integers(0, (11, 11, 11, 2, 2), (steps + 20, num_environments, agents, 5))
    for action in actions[:20]:
        environment.step({KIND: action})
    return environment, actions[20:]


def play(settings: dict[str, Any], num_environments: int, steps: int, seed: int) -> float:
    """Seconds of CPU time per environment and step."""
    environment, actions = ready(settings, num_environments, steps, seed)
    start = time.process_time()
    for action in actions:
        environment.step({KIND: action})
    return (time.process_time() - start) / (steps * num_environments)


def physics_alone(settings: dict[str, Any], num_environments: int, steps: int, seed: int) -> float:
    """Seconds that MuJoCo needs for one step of the same play."""
    spent, whole_step = [0.0, 0], World.step

    def step(world: World) -> None:
        start = time.process_time()
        mujoco.mj_step(world.model, world.data, 15)
        middle = time.process_time()
        world.update()
        warm_start = world.warm_start.copy()
        again = time.process_time()
        mujoco.mj_forward(world.model, world.data)
        spent[0] += middle - start + time.process_time() - again
        spent[1] += 1
        world.warm_start[:] = warm_start

    World.step = step  # type: ignore[method-assign]
    try:
        play(settings, num_environments, steps, seed)
    finally:
        World.step = whole_step  # type: ignore[method-assign]
    return spent[0] / spent[1]


def profile(settings: dict[str, Any], num_environments: int, steps: int, seed: int) -> dict[str, float]:
    """Seconds of each part per environment and step."""
    environment, actions = ready(settings, num_environments, steps, seed)
    stopwatch, methods = Stopwatch(), {name: getattr(*place) for name, place in PARTS.items()}
    for name, (owner, method) in PARTS.items():
        setattr(owner, method, stopwatch.timed(name, methods[name]))
    step = stopwatch.timed("rewards, flags, reading, the rest", environment.step)
    try:
        for action in actions:
            step({KIND: action})
    finally:
        for name, (owner, method) in PARTS.items():
            setattr(owner, method, methods[name])
    return {name: seconds / (steps * num_environments) for name, seconds in stopwatch.seconds.items()}


@click.command()
@click.option("--environments", default=16, help="Environments of a group.")
@click.option("--steps", default=300, help="Steps of each measurement.")
@click.option("--repeats", default=3, help="Measurements; the median is given.")
def main(num_environments: int, steps: int, repeats: int) -> None:
    print(f"{num_environments} environments, {steps} steps, median of {repeats}\n")
    print("| scenario | whole step, steps/s | physics alone, steps/s | share |\n|---|---|---|---|")
    for name, settings in CASES.items():
        pairs = [
            (play(settings, num_environments, steps, seed), physics_alone(settings, num_environments, steps, seed))
            for seed in range(repeats)
        ]
        whole, physics = np.median(pairs, axis=0)
        share = np.median([alone / all_of_it for all_of_it, alone in pairs])
        print(f"| {name} | {1 / whole:,.0f} | {1 / physics:,.0f} | {share:.0%} |")
    for name in list(CASES)[:3]:
        parts = profile(CASES[name], num_environments, steps, 0)
        print(f"\n{name}: {1e6 * sum(parts.values()):.0f} us a step")
        for part, seconds in sorted(parts.items(), key=lambda item: -item[1]):
            print(f"    {1e6 * seconds:7.1f} us  {part}")


if __name__ == "__main__":
    main()
