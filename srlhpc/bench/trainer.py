"""The trainer's share of computing when actors are not the limit, with and without prefetching the next batch.

The simulator costs nothing and the batch is trained many times, so that actors wait for the trainer. A batch has more
blocks than wait in the trainer's pool and the actors' slots: without prefetch the rest comes while the trainer waits.
"""

from __future__ import annotations

from srlhpc.bench.jobs import synthetic_job
from srlhpc.bench.rows import Row, Spread
from srlhpc.bench.runs import Measure, measure_runs, rates

_NETWORK = {"kind": "mlp", "hidden": [256, 256]}


def measure_trainer(*, actors: int, measure: Measure) -> list[Row]:
    """A row with prefetch and one without."""
    job = synthetic_job(
        {"observation_shape": [64]},
        {"ranks": actors, "ring": 2, "environments": 4, "inference": {"kind": "server"}},
        network=_NETWORK,
        fragments=32,
        fragment_steps=32,
        epochs=4,
        minibatches=4,
    )
    rows = []
    for prefetch in (True, False):
        name = f"trainer, prefetch {'on' if prefetch else 'off'}"
        windows = measure_runs(name, job, [f"trainers.prefetch={str(prefetch).lower()}"], measure)
        rate, cpu = rates(windows)
        shares = [100 * w.counted("trainer", "computing_seconds") / w.counted("trainer", "seconds") for w in windows]
        details = {"trained steps/s": rate.median}
        rows.append(
            Row(name, "1,024 steps", Spread.of(shares), "% of the time computing", cpu, "CPU-s per 1M", {}, details)
        )
    return rows
