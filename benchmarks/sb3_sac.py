"""Stable-Baselines3's SAC on tasks of ours: greedy returns after training, and what training cost.

    make bench-rivals
    .venv-rivals/stable-baselines3/bin/python benchmarks/sb3_sac.py pendulum --seed 1

Prints one line of JSON: mean and deviation of 100 greedy episodes with the last parameters, CPU-seconds of training per
million steps, minutes. Settings are those that RL Baselines3 Zoo tuned for this SAC: one update for each step, two
layers of 256 units. One thread throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
from sb3_training import Game, train
from stable_baselines3 import SAC


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


def play(task: Task) -> Game:
    """The task's environment."""
    return gymnasium.make(task.environment)


def learner(task: Task, environment: Game, steps: int, seed: int) -> SAC:  # noqa: ARG001
    """An untrained agent."""
    return SAC(
        "MlpPolicy",
        environment,
        learning_rate=task.learning_rate,
        buffer_size=1_000_000,
        learning_starts=task.start,
        batch_size=256,
        gamma=0.99,
        tau=0.005,
        seed=seed,
        device="cpu",
    )


if __name__ == "__main__":
    train(__doc__, TASKS, play, learner)
