"""Stable-Baselines3's DQN on Pong, with the settings of `single_file_dqn.py`; prints its steps now and then."""

from __future__ import annotations

from pong import Pong
from single_file_dqn import BATCH, CAPACITY, EPSILON, EVERY, GAMMA, LEARNING_RATE, START, TARGET_EVERY
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

STEPS = 10_000_000


class Counting(BaseCallback):
    def _on_step(self) -> bool:
        if self.num_timesteps >= START and self.num_timesteps % (100 * EVERY) == 0:
            print(f"steps={self.num_timesteps}", flush=True)
        return True


def main() -> None:
    agent = DQN(
        "CnnPolicy",
        Pong(seed=1),
        learning_rate=LEARNING_RATE,
        buffer_size=CAPACITY,
        learning_starts=START,
        batch_size=BATCH,
        gamma=GAMMA,
        train_freq=EVERY,
        gradient_steps=1,
        target_update_interval=TARGET_EVERY * EVERY,
        exploration_initial_eps=EPSILON,
        exploration_final_eps=EPSILON,
        seed=1,
        device="cpu",
    )
    agent.learn(STEPS, callback=Counting())


if __name__ == "__main__":
    main()
