"""What a limit of the policy lag costs in speed: whole jobs in turns, in windows of some seconds.

python benchmarks/policy_lag_rate.py --repeats 3 --window 8 > rate.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from srlhpc.bench.end_to_end import default_cases
from srlhpc.bench.runs import STEPS_WITHOUT_END, Measure, measure_run

JOB = Path(__file__).parent.parent / "jobs/cartpole.yaml"
POLICY = "policies.default"
WITHOUT_END = (f"stop.steps={STEPS_WITHOUT_END}", "stop.return_mean=null")
FAST_TRAINER = (
    f"{POLICY}.batch.fragments=8",
    f"{POLICY}.algorithm.epochs=1",
    f"{POLICY}.algorithm.minibatches=1",
)
"""Four batches in play, and a trainer that waits for its actors."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--limits", nargs="*", default=["null", "auto", "1"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--window", type=float, default=8.0)
    arguments = parser.parse_args()
    bench = next(case.overrides for case in default_cases() if case.name.startswith("CartPole"))
    for _ in range(arguments.repeats):
        for name, changes in {"bench": bench, "the job": (), "batches of 8, 1 epoch": FAST_TRAINER}.items():
            for limit in arguments.limits:
                overrides = (*changes, *WITHOUT_END, f"{POLICY}.max_policy_lag={limit}")
                seen = measure_run(JOB, overrides, Measure(arguments.window / 2, arguments.window, 1))
                row = {"job": name, "limit": limit, "steps_per_second": seen.steps_per_second}
                sys.stdout.write(json.dumps(row | {"cpu_seconds_per_million": seen.cpu_per_million}) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
