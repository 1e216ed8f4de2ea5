"""Draws of transitions from the replay buffers of cpprb and TorchRL; see ../replay_rivals.py.

    .venv-rivals/replay/bin/python benchmarks/rivals/replay_buffers.py cpprb uniform --size 1024

Prints one line of JSON: how many draws each repeat made, and its seconds of wall and CPU. By priority, a priority of
each drawn transition is written back. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

CHUNK = 512
ALPHA, BETA = 0.6, 0.4


def cpprb(size: int, transitions: int, batch: int, by_priority: bool) -> Callable[[], None]:
    """The next observation is stored once, as the observation of the transition that follows."""
    from cpprb import PrioritizedReplayBuffer, ReplayBuffer

    fields = {
        "obs": {"shape": size, "dtype": np.uint8},
        "act": {"dtype": np.int64},
        "rew": {"dtype": np.float32},
        "done": {"dtype": np.float32},
    }
    if by_priority:
        buffer = PrioritizedReplayBuffer(transitions, fields, next_of="obs", alpha=ALPHA)
    else:
        buffer = ReplayBuffer(transitions, fields, next_of="obs")
    observations = np.ones((CHUNK, size), np.uint8)
    zeros = np.zeros(CHUNK)
    for _ in range(-(-transitions // CHUNK)):
        buffer.add(obs=observations, act=zeros, rew=zeros, next_obs=observations, done=zeros)
    priorities = np.random.default_rng(0).random(batch, np.float32)

    def draw() -> None:
        if by_priority:
            drawn = buffer.sample(batch, BETA)
            buffer.update_priorities(drawn["indexes"], priorities)
        else:
            buffer.sample(batch)

    return draw


def torchrl(size: int, transitions: int, batch: int, by_priority: bool) -> Callable[[], None]:
    """Both observations of a transition are stored."""
    import torch
    from tensordict import TensorDict
    from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.data.replay_buffers.samplers import PrioritizedSampler, RandomSampler

    torch.set_num_threads(1)
    sampler = PrioritizedSampler(transitions, ALPHA, BETA) if by_priority else RandomSampler()
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(transitions), sampler=sampler, batch_size=batch)
    some = TensorDict(
        {
            "obs": torch.ones(CHUNK, size, dtype=torch.uint8),
            "act": torch.zeros(CHUNK, dtype=torch.int64),
            "rew": torch.zeros(CHUNK),
            "next_obs": torch.ones(CHUNK, size, dtype=torch.uint8),
            "done": torch.zeros(CHUNK, dtype=torch.bool),
        },
        [CHUNK],
    )
    for _ in range(-(-transitions // CHUNK)):
        buffer.extend(some)
    priorities = torch.rand(batch)

    def draw() -> None:
        drawn = buffer.sample()
        if by_priority:
            buffer.update_priority(drawn["index"], priorities)

    return draw


def measure(draw: Callable[[], None], seconds: float, repeats: int) -> list[dict[str, float]]:
    """Draws for about so long, several times, after a round that counts for nothing."""
    found = []
    for _ in range(1 + repeats):
        count, wall, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < wall + seconds:
            draw()
            count += 1
        found.append({"count": count, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu})
    return found[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("buffer", choices=["cpprb", "torchrl"])
    parser.add_argument("draw", choices=["uniform", "prioritized"])
    parser.add_argument("--size", type=int, default=1024, help="bytes of an observation")
    parser.add_argument("--windows", type=int, default=256, help="drawn at once")
    parser.add_argument("--transitions", type=int, default=100_000, help="that are kept")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    make = {"cpprb": cpprb, "torchrl": torchrl}[arguments.buffer]
    draw = make(arguments.size, arguments.transitions, arguments.windows, arguments.draw == "prioritized")
    print(json.dumps(measure(draw, arguments.seconds, arguments.repeats)))


if __name__ == "__main__":
    main()
