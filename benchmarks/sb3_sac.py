"""Stable-Baselines3's SAC on tasks of ours: greedy returns after training, and what training cost.

    make bench-rivals
    .venv-rivals/stable-baselines3/bin/python benchmarks/sb3_sac.py pendulum --seed 1

Prints one line of JSON: mean and deviation of 100 greedy episodes with the last parameters, CPU-seconds of training per
million steps, minutes. Settings are those that RL Baselines3 Zoo tuned for this SAC: one update for each step, two
layers of 256 units. One thread throughout.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

EPISODES = 100


@dataclass(frozen=True)
class Task:
    """What is learnt, and how."""

    environment: str
    steps: int
    learning_rate: float
    start: int
    """Steps with uniform actions before the first update."""


TASKS = {
    "pendulum": Task("Pendulum-v1", 20_000, 1e-3, 100),
    "halfcheetah": Task("HalfCheetah-v5", 200_000, 3e-4, 10_000),
}


def make(task: Task, seed: int) -> gymnasium.Env[Any, Any]:
    """The environment, its generators seeded."""
    made = Monitor(gymnasium.make(task.environment))
    made.reset(seed=seed)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="instead of the task's")
    parser.add_argument("--episodes", type=int, default=EPISODES, help="greedy, after training")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    task = TASKS[arguments.task]
    agent = SAC(
        "MlpPolicy",
        make(task, arguments.seed),
        learning_rate=task.learning_rate,
        buffer_size=1_000_000,
        learning_starts=task.start,
        batch_size=256,
        gamma=0.99,
        tau=0.005,
        seed=arguments.seed,
        device="cpu",
    )
    wall, cpu = time.perf_counter(), time.process_time()
    agent.learn(arguments.steps or task.steps)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    fresh = make(task, arguments.seed + 10_000)
    mean, deviation = evaluate_policy(agent, fresh, arguments.episodes, deterministic=True, warn=False)
    result = {
        "task": arguments.task,
        "seed": arguments.seed,
        "steps": agent.num_timesteps,
        "updates": agent._n_updates,
        "return_mean": round(float(mean), 2),
        "return_deviation": round(float(deviation), 2),
        "episodes": arguments.episodes,
        "cpu_seconds_per_million": round(1e6 * cpu / agent.num_timesteps, 1),
        "minutes": round(wall / 60, 2),
        "settings": asdict(task),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
