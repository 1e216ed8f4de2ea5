"""Environment ring: what more groups of one actor bring, and what the first of them predicts.

While a group waits for its actions, the actor steps the others. So with s the time of a step and L the rest of the
period at ring 1 (asking, network, reply), ring r makes a step every max(s, (s + L) / r), and more groups bring nothing
from r = 1 + L / s on: where the time of inference is at most the step time x (ring - 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from srlhpc.bench.jobs import synthetic_job
from srlhpc.bench.rows import Reference, Row, Spread
from srlhpc.bench.runs import Measure, Window, measure_runs, rates

ENVIRONMENTS = 8


class Pace(NamedTuple):
    """A simulator's speed."""

    name: str
    step_seconds: float
    """Seconds of one step of the whole group."""
    work: str


PACES = (Pace("cheap", 100e-6, "cpu"), Pace("slow", 5e-3, "sleep"))


def measure_ring(rings: Sequence[int], *, actors: int, measure: Measure, paces: Sequence[Pace] = PACES) -> list[Row]:
    """A row for every speed of the simulator and every length of the ring; the first ring predicts the others."""
    rows = []
    for pace in paces:
        found = {
            ring: measure_runs(f"{pace.name} simulator, ring {ring}", _job(pace, ring, actors), [], measure)
            for ring in rings
        }
        base = rings[0]
        step = _mean([_step_seconds(window) for window in found[base]])
        period = actors * ENVIRONMENTS / _mean([_acted_per_second(window) for window in found[base]])
        for ring, windows in found.items():
            # At the first ring g the period is max(s, (s + L) / g), so g x period is s + L if inference limits.
            predicted = actors * ENVIRONMENTS / max(step, period * base / ring)
            rows.append(_row(pace, ring, windows, predicted, plateau_ring(step, period * base - step)))
    return rows


def plateau_ring(step_seconds: float, latency_seconds: float) -> int:
    """The shortest ring that hides the latency: the least r with latency <= step time x (r - 1)."""
    return 1 + math.ceil(max(0.0, latency_seconds) / step_seconds)


def _row(pace: Pace, ring: int, windows: Sequence[Window], predicted: float, plateau: int) -> Row:
    step = _mean([_step_seconds(window) for window in windows])
    return Row(
        f"ring, {pace.name} simulator",
        f"ring {ring}",
        Spread.of([_acted_per_second(window) for window in windows]),
        "steps/s",
        rates(windows)[1],
        "CPU-s per 1M",
        {"predicted": Reference(Spread.of([predicted]))},
        {
            "ms of a group's step": 1e3 * step,
            "predicted plateau from ring": plateau,
            "steps of a server's batch": _mean(
                [
                    w.counted("policy_server", "steps_inferred") / max(1.0, w.counted("policy_server", "batches"))
                    for w in windows
                ]
            ),
        },
    )


def _job(pace: Pace, ring: int, actors: int) -> dict[str, object]:
    return synthetic_job(
        {"step_seconds": pace.step_seconds / ENVIRONMENTS, "work": pace.work},
        {"ranks": actors, "ring": ring, "environments": ENVIRONMENTS, "inference": {"kind": "server"}},
        fragments=4 * ENVIRONMENTS,
        fragment_steps=16,
    )


def _step_seconds(window: Window) -> float:
    """Seconds of one step of a group."""
    return (
        window.counted("actor", "environment_seconds") * ENVIRONMENTS / max(1.0, window.counted("actor", "steps_acted"))
    )


def _acted_per_second(window: Window) -> float:
    return window.counted("actor", "steps_acted") / max(window.counted_seconds("actor"), 1e-9)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
