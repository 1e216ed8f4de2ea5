"""Stable-Baselines3's DQN on tasks of ours: greedy returns after training, and what training cost.

    make bench-rivals
    .venv-rivals/stable-baselines3/bin/python benchmarks/sb3_dqn.py breakout --seed 1

Prints one line of JSON: mean and deviation of 100 greedy episodes with the last parameters, CPU-seconds of training per
million steps, minutes. MinAtar: network, frames, updates, replay and exploration of `jobs/minatar_*_dqn.yaml`. Others:
the settings that RL Baselines3 Zoo tuned for this DQN. One thread throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import torch
from sb3_training import Game, train
from stable_baselines3 import DQN
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

MOST_FRAMES = 10_000


@dataclass(frozen=True)
class Task:
    """What is learnt, and how. Steps between updates and targets are steps of the environment."""

    environment: str
    steps: int
    learning_rate: float
    batch: int
    capacity: int
    start: int
    every: int
    """Steps between two rounds of updates."""
    updates: int
    """Of a round; -1: one for each step."""
    target_every: int
    final_epsilon: float
    epsilon_steps: int
    hidden: tuple[int, ...] = (256, 256)


def minatar(game: str) -> Task:
    """As the authors train, with Adam and one update per four frames."""
    return Task(
        environment=game,
        steps=1_000_000,
        learning_rate=2.5e-4,
        batch=32,
        capacity=100_000,
        start=5_000,
        every=4,
        updates=1,
        target_every=1_000,
        final_epsilon=0.1,
        epsilon_steps=100_000,
        hidden=(),
    )


def classic(environment: str, steps: int, start: int = 0) -> Task:
    """What the zoo tuned for Acrobot and LunarLander alike."""
    return Task(
        environment=environment,
        steps=steps,
        learning_rate=6.3e-4,
        batch=128,
        capacity=50_000,
        start=start,
        every=4,
        updates=-1,
        target_every=250,
        final_epsilon=0.1,
        epsilon_steps=round(0.12 * steps),
    )


TASKS = {
    "breakout": minatar("breakout"),
    "space_invaders": minatar("space_invaders"),
    "asterix": minatar("asterix"),
    "seaquest": minatar("seaquest"),
    "freeway": minatar("freeway"),
    "cartpole": Task("CartPole-v1", 50_000, 2.3e-3, 64, 100_000, 1_000, 256, 128, 10, 0.04, 8_000),
    "acrobot": classic("Acrobot-v1", 100_000),
    "lunarlander": classic("LunarLander-v3", 500_000),
}


class Cells(BaseFeaturesExtractor):
    """The published network of MinAtar: 16 filters of 3 x 3, then 128 units; cells come channels last."""

    def __init__(self, space: gymnasium.spaces.Box) -> None:
        super().__init__(space, features_dim=128)
        height, width, channels = space.shape
        self._convolution = nn.Conv2d(channels, 16, 3)
        self._linear = nn.Linear(16 * (height - 2) * (width - 2), 128)

    def forward(self, cells: Tensor) -> Tensor:
        seen = torch.relu(self._convolution(cells.float().permute(0, 3, 1, 2)))
        return torch.relu(self._linear(seen.flatten(1)))


def play(task: Task) -> Game:
    """The task's environment."""
    if task.hidden:
        return gymnasium.make(task.environment)
    from minatar.gym import BaseEnv

    return gymnasium.wrappers.TimeLimit(BaseEnv(task.environment), MOST_FRAMES)


def learner(task: Task, environment: Game, steps: int, seed: int) -> DQN:
    """An untrained agent; its exploration does not depend on how long it is trained."""
    network = {"net_arch": list(task.hidden)}
    if not task.hidden:
        network |= {"features_extractor_class": Cells, "normalize_images": False}
    return DQN(
        "MlpPolicy",
        environment,
        learning_rate=task.learning_rate,
        buffer_size=task.capacity,
        learning_starts=task.start,
        batch_size=task.batch,
        gamma=0.99,
        train_freq=task.every,
        gradient_steps=task.updates,
        target_update_interval=task.target_every,
        exploration_fraction=min(1.0, task.epsilon_steps / steps),
        exploration_final_eps=task.final_epsilon,
        policy_kwargs=network,
        seed=seed,
        device="cpu",
    )


if __name__ == "__main__":
    train(__doc__, TASKS, play, learner)
