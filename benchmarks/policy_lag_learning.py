"""What learning from data that is k updates old costs, with everything else equal: no ranks, the same on any machine.

    PYTHONPATH=. python benchmarks/policy_lag_learning.py --lags 0 1 2 3 5 9 --seeds 1 2 3 --out learning.jsonl

The job's own environment, network, algorithm and batch; every record of a batch is of the version k updates ago. In a
run only the first record of a fragment is as old as the lag that is shown. Runs that are in the output already are not
made again.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from policy_lag import TASKS, cell

from srlhpc.environment import Array, Environment, Step
from srlhpc.import_path import load_module
from srlhpc.roles.coordinating.progress import EPISODES_IN_MEAN
from srlhpc.specs.load import load_experiment
from tests.algorithms.collecting import Collector, changed, context, finish

JOBS = Path(__file__).parent.parent / "jobs"


class Heard(Environment):
    """An environment whose episodes are kept."""

    def __init__(self, inner: Environment) -> None:
        self._inner = inner
        self.spaces, self.num_environments = inner.spaces, inner.num_environments
        self.returns: deque[float] = deque(maxlen=EPISODES_IN_MEAN)

    def reset(self, seed: int) -> Step:
        return self._inner.reset(seed)

    def step(self, actions: Mapping[str, Array]) -> Step:
        step = self._inner.step(actions)
        self.returns.extend(statistics.fmean(episode.returns.values()) for episode in step.episodes)
        return step


def learn(name: str, lag: int, seed: int) -> dict[str, Any]:
    """Trains until the job's return or steps are reached."""
    task = TASKS[name]
    spec = load_experiment(JOBS / f"{task.job}.yaml", (*task.changes, f"stop.steps={task.steps}"))
    policy_spec, batch = spec.policies["default"], spec.policies["default"].batch
    factory = load_module(spec.environment.factory, "envs")
    (kind,) = factory.build(spec.environment, 1, seed).spaces.kinds
    environment = Heard(factory.build(spec.environment, batch.fragments // len(kind.agents), seed))
    torch.manual_seed(seed)
    policy = load_module(policy_spec.network.kind, "srlhpc.policies").build(
        policy_spec.network, kind, policy_spec.normalize
    )
    algorithm = load_module(policy_spec.algorithm.kind, "srlhpc.algorithms").build(
        policy_spec.algorithm, policy, context(seed)
    )
    acting = copy.deepcopy(policy)
    collector = Collector(environment, acting, steps=batch.fragment_steps, seed=seed)
    versions: deque[dict[str, torch.Tensor]] = deque(maxlen=lag + 1)
    steps, area, goal, begun = 0, 0.0, spec.stop.return_mean, time.process_time()
    solved = False
    while steps < task.steps and not solved:
        versions.append({key: tensor.clone() for key, tensor in policy.state_dict().items()})
        acting.load_state_dict(versions[0])
        made = collector.batch()
        # What weighs old data looks at its age.
        made = changed(made, versions=made.versions - (len(versions) - 1))
        finish(algorithm.update(made))
        here = int(made.valid.unflatten(1, (environment.num_environments, -1)).any(2).sum())
        steps += here
        mean = statistics.fmean(environment.returns) if environment.returns else 0.0
        area += here * mean
        solved = goal is not None and len(environment.returns) == EPISODES_IN_MEAN and mean >= goal
    return {"steps": steps, "return": mean, "mean_return": area / steps, "cpu": time.process_time() - begun}


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The median of each task and lag, the range of the seeds in brackets."""
    yield "| task | lag | runs | steps | return at the end | mean return |"
    yield "|---|---|---|---|---|---|"
    for name, lag in sorted(
        {(row["task"], row["lag"]) for row in rows}, key=lambda key: (list(TASKS).index(key[0]), key)
    ):
        runs = [row for row in rows if (row["task"], row["lag"]) == (name, lag)]
        cells = [cell([run[key] for run in runs], form) for key, form in _COLUMNS.items()]
        yield f"| {name} | {lag} | {len(runs)} | {' | '.join(cells)} |"


_COLUMNS = {"steps": ",.0f", "return": ",.4g", "mean_return": ",.4g"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--lags", nargs="*", type=int, default=[0, 1, 2, 3, 5, 9])
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--out", type=Path, required=True, help="a JSON line for every run")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    done = {(row["task"], row["lag"], row["seed"]) for row in rows}
    for seed in arguments.seeds:
        for name in arguments.tasks:
            for lag in arguments.lags:
                if (name, lag, seed) in done:
                    continue
                rows.append({"task": name, "lag": lag, "seed": seed} | learn(name, lag, seed))
                with arguments.out.open("a") as out:
                    out.write(json.dumps(rows[-1]) + "\n")
    sys.stdout.write("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
