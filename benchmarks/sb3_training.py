"""Trains an agent of Stable-Baselines3 on one of some tasks, for `sb3_dqn.py` and `sb3_sac.py`.

Prints one line of JSON: mean and deviation of 100 greedy episodes with the last parameters, CPU-seconds of training per
million steps, minutes. One thread throughout.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

EPISODES = 100

Game = gymnasium.Env[Any, Any]


def train(
    description: str | None,
    tasks: Mapping[str, Any],
    play: Callable[[Any], Game],
    learner: Callable[[Any, Game, int, int], Any],
) -> None:
    """Takes the arguments of the command line, trains, evaluates and prints.

    Args:
        description: of the script; its first line is shown.
        tasks: name to settings, a dataclass with `steps`.
        play: makes a task's environment.
        learner: makes an untrained agent of a task, its environment, steps of training and a seed.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0] if description else None)
    parser.add_argument("task", choices=tasks)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="instead of the task's")
    parser.add_argument("--episodes", type=int, default=EPISODES, help="greedy, after training")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    task = tasks[arguments.task]
    steps = arguments.steps or task.steps
    agent = learner(task, _seeded(play(task), arguments.seed), steps, arguments.seed)
    wall, cpu = time.perf_counter(), time.process_time()
    agent.learn(steps)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    fresh = _seeded(play(task), arguments.seed + 10_000)
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


def _seeded(game: Game, seed: int) -> Game:
    """The environment, watched, its generators seeded."""
    made = Monitor(game)
    made.reset(seed=seed)
    return made
