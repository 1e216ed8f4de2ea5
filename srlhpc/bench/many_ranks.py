"""Many actor ranks on one machine, whose simulators sleep as if they were slow: does it start, train, stay quiet?"""

from __future__ import annotations

from srlhpc.bench.jobs import synthetic_job
from srlhpc.bench.rows import Row, Spread
from srlhpc.bench.runs import Measure, measure_runs, rates

ENVIRONMENTS = 2


def measure_many_ranks(*, ranks: int, step_seconds: float, measure: Measure) -> list[Row]:
    """One row: trained steps per second of so many actors, whose group needs so long for a step."""
    job = synthetic_job(
        {"step_seconds": step_seconds / ENVIRONMENTS, "work": "sleep"},
        {"ranks": ranks, "ring": 1, "environments": ENVIRONMENTS, "inference": {"kind": "server"}},
        fragments=32 * ENVIRONMENTS,
        fragment_steps=4,
    )
    windows = measure_runs(f"{ranks} actors", job, [], measure)
    rate, cpu = rates(windows)
    details = {
        "s to the first trained batch": Spread.of([w.first_batch_seconds for w in windows]).median,
        "s until all ranks are there": Spread.of([w.all_ranks_seconds for w in windows]).median,
        "coordinator's share of a core in %": 100 * max(w.cores_of_rank(0) for w in windows),
        "cores in all": max(w.cpu_seconds / w.seconds for w in windows),
        "MB of PSS": max(w.pss_bytes for w in windows) / 1e6,
        "ranks alive": min(w.last.status["ranks_alive"] for w in windows),
        "steps/s if nothing waited": ranks * ENVIRONMENTS / step_seconds,
    }
    return [Row("many ranks", f"{ranks} actors", rate, "trained steps/s", cpu, "CPU-s per 1M", {}, details)]
