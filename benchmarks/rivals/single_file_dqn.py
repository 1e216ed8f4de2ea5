"""DQN as users write it in one file (the style of CleanRL), on Pong; prints the steps after every hundred updates.

An update of 32 transitions every four steps, so each is learnt from eight times; one game at a time, arrays in numpy,
frames whole. Its settings are those that `compare_rivals.py` gives srlhpc.
"""

from __future__ import annotations

import numpy as np
import torch
from pong import Pong
from torch import nn

CAPACITY, START, BATCH, EVERY, GAMMA, TARGET_EVERY, LEARNING_RATE = 50_000, 2_000, 32, 4, 0.99, 250, 1e-4
EPSILON = 0.05


def network(actions: int) -> nn.Sequential:
    convolutions = [nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1)]
    return nn.Sequential(
        *convolutions, nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions)
    )


def values(network: nn.Module, frames: np.ndarray) -> torch.Tensor:
    return network(torch.as_tensor(frames).float() / 255.0)


def main() -> None:
    game, random = Pong(seed=1), np.random.default_rng(1)
    actions = int(game.action_space.n)
    online, target = network(actions), network(actions)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=LEARNING_RATE)
    shape = game.observation_space.shape
    seen, after = (np.zeros((CAPACITY, *shape), np.uint8) for _ in range(2))
    acted, rewards = np.zeros(CAPACITY, np.int64), np.zeros(CAPACITY, np.float32)
    goes_on = np.zeros(CAPACITY, np.float32)
    observation, _ = game.reset()
    step = updates = 0
    while True:
        if random.random() < EPSILON:
            action = int(random.integers(actions))
        else:
            with torch.no_grad():
                action = int(values(online, observation[None]).argmax())
        following, reward, terminated, truncated, _ = game.step(action)
        slot = step % CAPACITY
        seen[slot], acted[slot], rewards[slot] = observation, action, reward
        after[slot], goes_on[slot] = following, 1.0 - terminated
        observation = game.reset()[0] if terminated or truncated else following
        step += 1
        if step < START or step % EVERY:
            continue
        rows = random.integers(min(step, CAPACITY), size=BATCH)
        with torch.no_grad():
            greatest = values(target, after[rows]).max(dim=1).values
        wanted = torch.as_tensor(rewards[rows]) + GAMMA * torch.as_tensor(goes_on[rows]) * greatest
        taken = values(online, seen[rows]).gather(1, torch.as_tensor(acted[rows])[:, None]).squeeze(1)
        optimizer.zero_grad()
        nn.functional.smooth_l1_loss(taken, wanted).backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        optimizer.step()
        updates += 1
        if updates % TARGET_EVERY == 0:
            target.load_state_dict(online.state_dict())
        if updates % 100 == 0:
            print(f"steps={step}", flush=True)


if __name__ == "__main__":
    main()
