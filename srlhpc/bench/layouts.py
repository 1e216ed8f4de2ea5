"""Where the network acts: on servers of its own, in the actors (IMPALA's layout), on the trainer (SEED's).

All processes of a run share the same cores, so that the layouts have the same budget. Only the place of the network
differs; the rings are equal, though inline inference gains nothing from one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from srlhpc.bench.jobs import CNN, MLP, PIXELS, synthetic_job
from srlhpc.bench.rows import Reference, Row
from srlhpc.bench.runs import Measure, measure_runs, rates

KINDS = {"server": "decoupled", "inline": "inline", "trainer": "SEED"}


class Weight(NamedTuple):
    """A network and a simulator that costs about as much as one for such a network does."""

    name: str
    network: Mapping[str, Any]
    environment: Mapping[str, Any]


WEIGHTS = (
    Weight("cheap network", MLP, {"step_seconds": 20e-6}),
    Weight("costly network", CNN, {"step_seconds": 250e-6, **PIXELS}),
)


def measure_layouts(*, actors: int, ring: int, measure: Measure, weights: Sequence[Weight] = WEIGHTS) -> list[Row]:
    """A row for every layout and network; the decoupled one is shown beside the others."""
    rows = []
    for weight in weights:
        found = {}
        for kind, name in KINDS.items():
            windows = measure_runs(f"{name}, {weight.name}", _job(weight, kind, actors, ring), [], measure)
            found[kind] = rates(windows)
        for kind, (rate, cpu) in found.items():
            others = {name: Reference(*found[other]) for other, name in KINDS.items() if other != kind}
            title = (f"{KINDS[kind]}, {weight.name}", f"{actors} actors")
            beside = others if kind == "server" else {}
            rows.append(Row(*title, rate, "trained steps/s", cpu, "CPU-s per 1M", beside))
    return rows


def _job(weight: Weight, kind: str, actors: int, ring: int) -> dict[str, Any]:
    return synthetic_job(
        weight.environment,
        {"ranks": actors, "ring": ring, "environments": 8, "inference": {"kind": kind}},
        network=weight.network,
        fragments=16,
        fragment_steps=32,
        minibatches=2,
    )
