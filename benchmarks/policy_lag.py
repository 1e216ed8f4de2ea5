"""What a limit of the policy lag costs and gains: learning, rate and measured lag of small jobs, with several limits.

    python benchmarks/policy_lag.py --limits null 0 1 2 --seeds 1 2 3 --out lag.jsonl

Seeds are the outer loop and limits the inner one, so that a busy machine is busy for all limits alike. Every run is a
line of the output as soon as it ends; runs that are there already are not made again.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

JOBS = Path(__file__).parent.parent / "jobs"
POLICY = "policies.default"


class Task(NamedTuple):
    """A job, what is changed in it, and the steps after which it ends if it is not solved."""

    job: str
    steps: int
    changes: tuple[str, ...] = ()


TASKS = {
    "cartpole": Task("cartpole", 200_000),
    "cartpole, batches of 8": Task("cartpole", 80_000, (f"{POLICY}.batch.fragments=8",)),
    "cartpole, weights by lag": Task("cartpole", 200_000, (f"{POLICY}.algorithm.lag_exponent=0.3333",)),
    "cartpole, ratios bounded": Task("cartpole", 200_000, (f"{POLICY}.algorithm.stale_ratio_clip=1",)),
    "cartpole, decoupled": Task("cartpole", 200_000, (f"{POLICY}.algorithm.decoupled=true",)),
    "cartpole, vtrace": Task("cartpole_vtrace", 500_000),
    "cartpole, appo": Task("cartpole_vtrace", 500_000, (f"{POLICY}.algorithm.clip_ratio=0.4",)),
    "breakout": Task("minatar_breakout_ppo", 500_000),
    "breakout, weights by lag": Task("minatar_breakout_ppo", 500_000, (f"{POLICY}.algorithm.lag_exponent=0.3333",)),
    "breakout, ratios bounded": Task("minatar_breakout_ppo", 500_000, (f"{POLICY}.algorithm.stale_ratio_clip=1",)),
    "breakout, decoupled": Task("minatar_breakout_ppo", 500_000, (f"{POLICY}.algorithm.decoupled=true",)),
    "breakout, vtrace": Task("minatar_breakout_vtrace", 500_000),
    "breakout, appo": Task("minatar_breakout_vtrace", 500_000, (f"{POLICY}.algorithm.clip_ratio=0.4",)),
    "catch": Task("catch", 100_000),
    "recall": Task("recall", 100_000),
    "acrobot": Task("cartpole", 60_000, ("environment.id=Acrobot-v1", "stop.return_mean=null")),
    "pendulum": Task(
        "cartpole",
        100_000,
        (
            "environment.id=Pendulum-v1",
            "stop.return_mean=null",
            f"{POLICY}.normalize={{observations: true, returns: true}}",
            f"{POLICY}.algorithm.gamma=0.9",
        ),
    ),
    "simple_spread": Task("simple_spread", 60_000),
    "halfcheetah": Task("halfcheetah", 100_000),
}


def measure(task: Task, limit: str, seed: int) -> dict[str, Any]:
    """Trains once; what the run's metrics and the operating system say of it."""
    with tempfile.TemporaryDirectory(prefix="policy-lag-") as root:
        changes = (*task.changes, f"stop.steps={task.steps}", f"seed={seed}", "checkpoint.every_seconds=null")
        command = [sys.executable, "-m", "srlhpc.cli.main", "run", str(JOBS / f"{task.job}.yaml"), "--root", root]
        command += ["--name", "run"] + [part for change in changes for part in ("--set", change)]
        if limit != "default":
            command += ["--set", f"{POLICY}.max_policy_lag={limit}"]
        before = _cpu_seconds()
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        cpu = _cpu_seconds() - before
        if ended.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        folder = Path(root) / "run"
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return _summary(lines, json.loads((folder / "status.json").read_text()), cpu)


def _cpu_seconds() -> float:
    """Of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _summary(lines: list[dict[str, Any]], status: dict[str, Any], cpu: float) -> dict[str, Any]:
    known = [line for line in lines if line["return_mean"] is not None]
    area = sum(
        (after["steps"] - before["steps"]) * (after["return_mean"] + before["return_mean"]) / 2
        for before, after in zip(known, known[1:], strict=False)
    )
    # The first updates, before the slots are full, are no sign of what comes after.
    lags = [line["policies"]["default"]["policy_lag"] for line in lines[2:] if line["policies"]]
    return {
        "steps": status["steps"],
        "return": status["return_mean"],
        "mean_return": area / max(known[-1]["steps"] - known[0]["steps"], 1),
        "steps_per_second": status["steps"] / status["seconds"],
        "cpu_seconds_per_million": 1e6 * cpu / status["steps"],
        "lag_mean": statistics.fmean(lag[1] for lag in lags),
        "lag_max": max(lag[2] for lag in lags),
    }


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The median of each task and limit, the range of the seeds in brackets."""
    yield f"| task | max_policy_lag | runs | {' | '.join(heading for heading, _ in _COLUMNS.values())} |"
    yield "|---" * (3 + len(_COLUMNS)) + "|"
    for name, limit in dict.fromkeys((row["task"], row["limit"]) for row in rows):
        runs = [row for row in rows if (row["task"], row["limit"]) == (name, limit)]
        cells = [cell([run[key] for run in runs], form) for key, (_, form) in _COLUMNS.items()]
        yield f"| {name} | {limit} | {len(runs)} | {' | '.join(cells)} |"


_COLUMNS = {
    "steps": ("steps", ",.0f"),
    "return": ("return at the end", ",.4g"),
    "mean_return": ("mean return", ",.4g"),
    "lag_mean": ("lag", ".1f"),
    "lag_max": ("max lag", ".0f"),
    "steps_per_second": ("steps/s", ",.0f"),
    "cpu_seconds_per_million": ("CPU-s per 1M", ",.0f"),
}
"""Of a run: heading and form."""


def cell(values: list[float], form: str) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}}" + (f" ({low:{form}} to {high:{form}})" if low != high else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--limits", nargs="*", default=["null", "0", "1", "2"], help="or 'default': the job's own")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--out", type=Path, required=True, help="a JSON line for every run")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    done = {(row["task"], row["limit"], row["seed"]) for row in rows}
    for seed in arguments.seeds:
        for name in arguments.tasks:
            for limit in arguments.limits:
                if (name, limit, seed) in done:
                    continue
                rows.append({"task": name, "limit": limit, "seed": seed} | measure(TASKS[name], limit, seed))
                with arguments.out.open("a") as out:
                    out.write(json.dumps(rows[-1]) + "\n")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
