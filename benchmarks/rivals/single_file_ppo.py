"""PPO as users write it in one file (the style of CleanRL): single_file_ppo.py pong|cartpole|pong_published.

Pong by envpool's C++ environment, CartPole by Gymnasium's. Prints the steps trained after every update, and the mean
return of the last 20 episodes. `pong` does the work that `jobs/pong.yaml` is compared with; `pong_published` has the
settings that CleanRL publishes for Atari, of which the learning rate falls to 0 at ten million steps.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import NamedTuple

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

STEPS, GAMMA, LAMBDA = 128, 0.99, 0.95


class Task(NamedTuple):
    environments: int
    minibatch: int
    epochs: int
    learning_rate: float
    clip: float
    entropy: float
    annealed_steps: int | None = None


TASKS = {
    "pong": Task(8, 256, 1, 2.5e-4, 0.1, 0.01),
    "pong_published": Task(8, 256, 4, 2.5e-4, 0.1, 0.01, annealed_steps=10_000_000),
    "cartpole": Task(16, 512, 4, 1e-3, 0.2, 0.0),
}


def _layer(module: nn.Module, gain: float = 2**0.5) -> nn.Module:
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)
    return module


def _mlp(inputs: int, outputs: int, gain: float) -> nn.Module:
    first, second = _layer(nn.Linear(inputs, 64)), _layer(nn.Linear(64, 64))
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), _layer(nn.Linear(64, outputs), gain))


class ActorCritic(nn.Module):
    def __init__(self, shape: tuple[int, ...], actions: int) -> None:
        super().__init__()
        self.is_image = len(shape) == 3
        if self.is_image:
            convolutions = [_layer(nn.Conv2d(4, 32, 8, 4)), nn.ReLU(), _layer(nn.Conv2d(32, 64, 4, 2)), nn.ReLU()]
            convolutions += [_layer(nn.Conv2d(64, 64, 3, 1)), nn.ReLU(), nn.Flatten()]
            self.torso = nn.Sequential(*convolutions, _layer(nn.Linear(3136, 512)), nn.ReLU())
            self.actor, self.critic = _layer(nn.Linear(512, actions), 0.01), _layer(nn.Linear(512, 1), 1.0)
        else:
            self.torso = nn.Identity()
            self.actor, self.critic = _mlp(shape[0], actions, 0.01), _mlp(shape[0], 1, 1.0)

    def forward(self, observations: Tensor) -> tuple[Categorical, Tensor]:
        features = self.torso(observations.float() / 255.0 if self.is_image else observations)
        return Categorical(logits=self.actor(features)), self.critic(features).squeeze(-1)


def environments(task: str, count: int) -> gymnasium.vector.VectorEnv:
    if task != "cartpole":
        import envpool

        settings = {"reward_clip": True, "episodic_life": True, "repeat_action_probability": 0.0}
        return envpool.make_gymnasium("Pong-v5", num_envs=count, seed=1, **settings)
    same_step = gymnasium.vector.AutoresetMode.SAME_STEP
    makers = [lambda: gymnasium.make("CartPole-v1")] * count
    return gymnasium.vector.SyncVectorEnv(makers, autoreset_mode=same_step)


def main() -> None:
    name = sys.argv[1]
    task = TASKS[name]
    envs = environments(name, task.environments)
    shape = envs.single_observation_space.shape
    agent = ActorCritic(shape, int(envs.single_action_space.n))
    optimizer = torch.optim.Adam(agent.parameters(), lr=task.learning_rate, eps=1e-5)
    kind = torch.uint8 if agent.is_image else torch.float32
    observations = torch.zeros((STEPS, task.environments, *shape), dtype=kind)
    actions = torch.zeros((STEPS, task.environments), dtype=torch.long)
    log_probs, rewards, values = (torch.zeros(STEPS, task.environments) for _ in range(3))
    firsts = torch.zeros(STEPS + 1, task.environments)
    returns_now, last_returns = np.zeros(task.environments), deque([], maxlen=20)
    seen, trained = torch.as_tensor(np.asarray(envs.reset()[0]), dtype=kind), 0
    while True:
        for step in range(STEPS):
            observations[step] = seen
            with torch.no_grad():
                policy, values[step] = agent(seen)
                actions[step] = policy.sample()
                log_probs[step] = policy.log_prob(actions[step])
            chosen = actions[step].numpy().astype(np.int32 if agent.is_image else np.int64)
            after, reward, terminated, truncated, _ = envs.step(chosen)
            seen = torch.as_tensor(np.asarray(after), dtype=kind)
            rewards[step] = torch.as_tensor(np.asarray(reward, np.float32))
            returns_now += reward
            last_returns.extend(returns_now[terminated | truncated])
            returns_now[terminated | truncated] = 0.0
            firsts[step + 1] = torch.as_tensor((terminated | truncated).astype(np.float32))
        advantages = torch.zeros_like(rewards)
        with torch.no_grad():
            following, trace = agent(seen)[1], torch.zeros(task.environments)
        for step in reversed(range(STEPS)):
            goes_on = 1.0 - firsts[step + 1]
            delta = rewards[step] + GAMMA * following * goes_on - values[step]
            advantages[step] = trace = delta + GAMMA * LAMBDA * goes_on * trace
            following = values[step]
        firsts[0] = firsts[STEPS]
        rows = [
            x.reshape(-1, *x.shape[2:]) for x in (observations, actions, log_probs, advantages, advantages + values)
        ]
        if task.annealed_steps is not None:
            optimizer.param_groups[0]["lr"] = task.learning_rate * max(0.0, 1.0 - trained / task.annealed_steps)
        for _ in range(task.epochs):
            for chosen in torch.randperm(STEPS * task.environments).split(task.minibatch):
                seen_then, acted, behaviour, advantage, returns = (row[chosen] for row in rows)
                policy, value = agent(seen_then)
                ratio = (policy.log_prob(acted) - behaviour).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                clipped = ratio.clamp(1 - task.clip, 1 + task.clip)
                surrogate = torch.max(-advantage * ratio, -advantage * clipped).mean()
                loss = surrogate + 0.5 * (value - returns).square().mean() - task.entropy * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        trained += STEPS * task.environments
        mean = np.mean(last_returns) if last_returns else float("nan")
        print(f"steps={trained} return={mean:.2f}", flush=True)


if __name__ == "__main__":
    main()
