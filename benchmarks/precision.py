"""What bfloat16 changes beside float32: what is learnt, the first minibatch's ratios, log-probabilities of actions.

    python benchmarks/precision.py cartpole recall minatar_breakout_ppo --cores 0 1 --out precision.jsonl

Trains every job with PPO serially in both precisions, one core each, with the same seed, and plays 100 greedy episodes.
Ratios are those of the first minibatch of an update, of data that the same parameters acted: their largest distance
from 1, median over updates (and the largest), is what acting and training compute differently. Log-probabilities are
those of the most probable actions of the trained network, beside float32, mean (and largest) over 2,000 steps.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import torch
from learning import learn

from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.environment import zero_actions
from srlhpc.import_path import load_module
from srlhpc.policies.held_weights import hold_weights
from srlhpc.policies.policy import Policy
from srlhpc.ranks.inputs import read_plan
from srlhpc.ranks.policies import build_policy
from srlhpc.runs.paths import RunPaths

PRECISIONS = ("float32", "bfloat16")
STEPS = 2_000
ENVIRONMENTS = 8


def ratios(paths: RunPaths) -> list[float]:
    """Largest distance of a ratio from 1 in the first minibatch of every update."""
    lines = map(json.loads, paths.metrics.read_text().splitlines())
    policies = [policy for line in lines for policy in line["policies"].values()]
    return [policy["ratio_max_deviation_first"] for policy in policies if "ratio_max_deviation_first" in policy]


def compared(paths: RunPaths) -> dict[str, float]:
    """How the trained network's decisions in bfloat16 differ from those in float32, which are played."""
    attempt = paths.last_attempt()
    assert attempt is not None
    plan = read_plan(paths, attempt, serial=False)
    seat = plan.seats[0]
    newest = CheckpointFolder(paths.checkpoints).newest_valid()
    assert newest is not None
    network = build_policy(plan, seat.policy)
    parameters = newest.tree["policies"][seat.policy]["parameters"]
    network.load_state_dict({key: torch.from_numpy(np.asarray(array)) for key, array in parameters.items()})
    half = copy.deepcopy(network)
    hold_weights(half, torch.bfloat16)
    settings = plan.spec.environment
    environment = load_module(settings.factory, "envs").build(settings, num_environments=ENVIRONMENTS, seed=1)
    actions = zero_actions(environment.spaces, ENVIRONMENTS)
    step = environment.reset(1)
    states = {id(policy): policy.initial_state(ENVIRONMENTS) for policy in (network, half)}

    def act(policy: Policy) -> Any:
        now = step.kinds[seat.kind]
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=policy is half):
            acted = policy.act(
                {key: torch.from_numpy(np.ascontiguousarray(values[:, 0])) for key, values in now.observations.items()},
                states[id(policy)],
                torch.from_numpy(np.ascontiguousarray(now.first[:, 0])),
                action_masks=None,
                generator=None,
                exploration={},
            )
        states[id(policy)] = acted.state
        return acted

    differences, others, decisions = [], 0, 0
    for _ in range(STEPS // ENVIRONMENTS):
        whole, rounded = act(network), act(half)
        counts = torch.from_numpy(step.kinds[seat.kind].valid[:, 0].copy())
        same = counts & (whole.actions == rounded.actions)
        others, decisions = others + int((counts & ~same).sum()), decisions + int(counts.sum())
        differences += (whole.log_probs - rounded.log_probs).abs()[same].tolist()
        actions[seat.kind][:, 0] = whole.actions.numpy()
        step = environment.step(actions)
    return {
        "log_prob_largest": max(differences),
        "log_prob_mean": statistics.fmean(differences),
        "other_actions": others / decisions,
    }


def measure(job: str, precision: str, core: int, folder: Path, options: Sequence[str]) -> dict[str, Any]:
    """Trains and compares one."""
    row = learn(job, 1, core, folder / precision, [*options, "--set", f"trainers.precision={precision}"])
    paths = RunPaths(folder / precision / f"{job}-1")
    seen = ratios(paths)
    return {
        **row,
        "precision": precision,
        "ratio_median": statistics.median(seen),
        "ratio_largest": max(seen),
        **compared(paths),
    }


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for every job and precision."""
    yield "| job | precision | return | steps | ratio − 1 at first | change of log-probability | other action |"
    yield "|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: (row["job"], PRECISIONS.index(row["precision"]))):
        yield (
            f"| `{row['job']}` | {row['precision']} | {row['return']:,.4g} | {row['steps']:,} | "
            f"{row['ratio_median']:.1e} ({row['ratio_largest']:.1e}) | "
            f"{row['log_prob_mean']:.1e} ({row['log_prob_largest']:.1e}) | {row['other_actions']:.2%} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("jobs", nargs="+", help="names of files in jobs/ with the rule ppo, without .yaml")
    parser.add_argument("--cores", nargs="*", type=int, default=[0])
    parser.add_argument("--out", type=Path, required=True, help="a JSON line for every run")
    arguments, options = parser.parse_known_args()
    cores: Queue[int] = Queue()
    for core in arguments.cores:
        cores.put(core)

    def make(job: str, precision: str, folder: Path) -> dict[str, Any]:
        core = cores.get()
        try:
            return measure(job, precision, core, folder, [option for option in options if option != "--"])
        finally:
            cores.put(core)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(arguments.cores)) as pool:
        for precision in PRECISIONS:
            (Path(folder) / precision).mkdir()
        made = [pool.submit(make, job, p, Path(folder)) for job in arguments.jobs for p in PRECISIONS]
        rows = [row.result() for row in made]
    arguments.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sys.stdout.write("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
