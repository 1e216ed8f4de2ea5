"""What a checkpoint costs the trainer, beside one copy of the same bytes in memory."""

from __future__ import annotations

import math
import time

import numpy as np

from srlhpc.bench.jobs import synthetic_job
from srlhpc.bench.rows import Reference, Row, Spread
from srlhpc.bench.runs import Measure, measure_runs, rates

_BYTES_OF_A_PARAMETER = 12
"""Bytes that a checkpoint holds of one parameter: itself and Adam's two moments, in float32."""
_COPIES = 20


def measure_checkpoint(*, megabytes: int, measure: Measure) -> list[Row]:
    """One row: milliseconds of the trainer's time for each checkpoint of about that size."""
    units = math.isqrt(megabytes * 1_000_000 // _BYTES_OF_A_PARAMETER)
    job = synthetic_job(
        {},
        {"ranks": 1, "ring": 2, "environments": 4, "inference": {"kind": "server"}},
        network={"kind": "mlp", "hidden": [units, units], "shared": True},
        fragments=8,
        fragment_steps=8,
        checkpoint={"every_seconds": 1.0},
    )
    windows = measure_runs("checkpoints", job, [], measure)
    lost = [
        1e3 * w.counted("trainer", "checkpoint_seconds") / max(1.0, w.counted("trainer", "checkpoints"))
        for w in windows
    ]
    size = max(window.checkpoint_bytes for window in windows)
    copy = copy_milliseconds(size)
    return [
        Row(
            "trainer time lost to a checkpoint",
            f"{size / 1e6:.0f} MB",
            Spread.of(lost),
            "ms",
            rates(windows)[1],
            "CPU-s per 1M",
            {"one copy in memory": Reference(copy)},
            {"ms more than a copy": Spread.of(lost).median - copy.median},
        )
    ]


def copy_milliseconds(size_bytes: int) -> Spread:
    """Milliseconds of one copy into memory that was touched before."""
    source, target = np.ones(size_bytes, np.uint8), np.zeros(size_bytes, np.uint8)
    seconds = []
    for _ in range(_COPIES):
        begun = time.perf_counter()
        np.copyto(target, source)
        seconds.append(1e3 * (time.perf_counter() - begun))
    return Spread.of(seconds)
