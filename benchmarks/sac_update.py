"""CPU time of one SAC update, without drawing its batch: srlhpc's beside Stable-Baselines3's.

    make bench-rivals
    python benchmarks/sac_update.py --rival .venv-rivals/stable-baselines3/bin/python

Two layers of 256 units, 256 transitions of HalfCheetah's size (17 numbers observed, 6 of an action), one thread. Each
of several rounds measures one after the other, in processes of their own; the table gives the best and the median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

OBSERVED, ACTIONS, BATCH, HIDDEN = 17, 6, 256, 256


def ours() -> Callable[[int], None]:
    """Makes as many updates as it is told."""
    import torch

    from srlhpc.algorithms import sac
    from srlhpc.algorithms.algorithm import Batch, Context
    from srlhpc.environment import ArraySpec, Continuous, Kind
    from srlhpc.policies import mlp
    from srlhpc.ranks.malloc import keep_freed_memory
    from srlhpc.specs.experiment import NormalizeSpec

    class Alone:
        trainers = 1

        def sum(self, tensor: Any) -> Any:
            del tensor
            yield

    keep_freed_memory()  # as every rank does
    torch.set_num_threads(1)
    kind = Kind("agents", ("agent",), {"obs": ArraySpec((OBSERVED,), "float32")}, Continuous(ACTIONS))
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [HIDDEN, HIDDEN], "activation": "relu"})
    settings = sac.Settings.model_validate({"kind": "sac"})
    actor = mlp.build_actor(network, kind, NormalizeSpec(), settings.needs(kind).head)
    trained = mlp.build_critics(network, actor, NormalizeSpec())
    rule = sac.build(settings, trained, Context(Alone(), torch.device("cpu"), None, 0))
    nothing = torch.zeros(1, BATCH, dtype=torch.bool)
    fields = {
        "obs.obs": torch.randn(2, BATCH, OBSERVED),
        "actions": torch.rand(1, BATCH, ACTIONS) * 2 - 1,
        "rewards": torch.randn(1, BATCH),
        "terminated": nothing,
        "valid": ~nothing,
    }

    def run(updates: int) -> None:
        for version in range(updates):
            for _ in rule.update(Batch(fields, burn_in_steps=0, version=version, steps=0)):
                pass

    return run


def theirs() -> Callable[[int], None]:
    """Makes as many updates as it is told, always of the same batch."""
    import gymnasium
    import numpy as np
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.logger import Logger

    torch.set_num_threads(1)

    class Nothing(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVED,), np.float32)
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed, options=options)
            return self.observation_space.sample(), {}

        def step(self, action: Any) -> Any:
            return self.observation_space.sample(), float(action[0]), False, False, {}

    agent = SAC("MlpPolicy", Nothing(), learning_starts=BATCH, buffer_size=10 * BATCH, device="cpu", seed=0)
    agent.learn(2 * BATCH)
    agent.set_logger(Logger(folder=None, output_formats=[]))
    batch = agent.replay_buffer.sample(BATCH)
    agent.replay_buffer.sample = lambda *_, **__: batch

    return lambda updates: agent.train(gradient_steps=updates, batch_size=BATCH)


def measured(run: Callable[[int], None], updates: int) -> float:
    """CPU-seconds of one update."""
    run(50)
    begun = time.process_time()
    run(updates)
    return (time.process_time() - begun) / updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rival", help="Python with Stable-Baselines3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--only", choices=["srlhpc", "sb3"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measured(ours() if arguments.only == "srlhpc" else theirs(), arguments.updates)))
        return
    pythons = {"srlhpc": sys.executable} | ({"sb3": arguments.rival} if arguments.rival else {})
    found: dict[str, list[float]] = {name: [] for name in pythons}
    for _ in range(arguments.rounds):
        for name, python in pythons.items():
            command = [python, __file__, "--only", name, "--updates", str(arguments.updates)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found[name].append(1e3 * json.loads(output.splitlines()[-1]))
    print("| update of | best, CPU ms | median, CPU ms |\n|---|---|---|")
    for name, numbers in found.items():
        print(f"| {name} | {min(numbers):.2f} | {statistics.median(numbers):.2f} |")


if __name__ == "__main__":
    main()
