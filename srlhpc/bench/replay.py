"""Draws from the store of a replay rank, in one process and without messages, beside a bare gather of the same bytes.

Drawn are transitions: windows of one record with its two observations and all other fields. Drawing by priority also
writes a priority back for each. The bare gather takes the same fields of as many records at random places, which are
known beforehand, with one `numpy.take` for each field.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from srlhpc.bench.contest import Way, contest, row_of
from srlhpc.bench.in_world import rank_main
from srlhpc.bench.rows import Row
from srlhpc.bench.streams import LIMIT_SECONDS, size_text
from srlhpc.bench.worlds import measured_in_world
from srlhpc.comm.channel import Message
from srlhpc.comm.mpi.world import MpiWorld
from srlhpc.data.block_store import BlockStore
from srlhpc.data.blocks import BlockHeader, PolicyShapes, block_layout
from srlhpc.data.windows import GENERATION, SLOT, WindowShape, window_layout
from srlhpc.environment import ArraySpec, Discrete, Kind
from srlhpc.specs.replay import Draw, PrioritizedDraw, UniformDraw

log = logging.getLogger(__name__)

RECORDS = 64
ENVIRONMENTS = 8
_WINDOW = WindowShape(fragment_steps=1)
_GATHER = "bare numpy gather"
_DRAWS: Mapping[str, Draw] = {"uniform": UniformDraw(), "prioritized": PrioritizedDraw()}
_PLACES = 1024
"""Random choices of records that the bare gather goes through in turn: so many that they reach most of a store of
256 MB, and caches help it no more than the store."""


def measure_replay(sizes: Sequence[int], *, windows: int, megabytes: int, seconds: float, repeats: int) -> list[Row]:
    """Two rows, uniform and by priority, for every size of an observation.

    Args:
        sizes: bytes of an observation.
        windows: drawn at once.
        megabytes: that each store keeps.
        seconds: that one repeat should take.
        repeats: of each case.
    """
    rows = []
    for size in sizes:
        case = {"size": size, "windows": windows, "megabytes": megabytes, "seconds": seconds, "repeats": repeats}
        log.info("draws from replay, %s", size_text(size))
        found = measured_in_world(
            "srlhpc.bench.replay", 1, case, limit_seconds=LIMIT_SECONDS + megabytes / 10 + 100 * seconds * repeats
        )
        gigabytes = window_layout(_shapes(size), _WINDOW.records, windows).size_bytes / windows / 1e9
        for name in _DRAWS:
            both = {key: found[key] for key in (name, _GATHER)}
            title = (f"replay, {name}", f"{size_text(size)} x {windows}")
            row = row_of(both, name, title, windows, rate=(1.0, "draws/s"), cpu=(1e6, "CPU-s per 1M"))
            rows.append(replace(row, details={"GB/s": row.rate.median * gigabytes}))
    return rows


def kept_transitions(size: int, megabytes: int) -> int:
    """Transitions that a store of so many megabytes keeps, for observations of `size` bytes."""
    return _slots(size, megabytes) * RECORDS * ENVIRONMENTS


def _slots(size: int, megabytes: int) -> int:
    return max(2, megabytes * 1_000_000 // block_layout(_shapes(size), RECORDS, ENVIRONMENTS, 1).size_bytes)


def _shapes(size: int) -> PolicyShapes:
    kind = Kind("agent", ("agent",), {"obs": ArraySpec((size,), "uint8")}, Discrete(4))
    return PolicyShapes(kind, {}, {"q_taken": ArraySpec((), "float32"), "q_max": ArraySpec((), "float32")})


# --- on the rank -----------------------------------------------------------------------------------------------------


def _measure(world: MpiWorld, case: Mapping[str, Any]) -> dict[str, Any]:
    shapes, windows = _shapes(case["size"]), case["windows"]
    block = Message.allocate(block_layout(shapes, RECORDS, ENVIRONMENTS, 1), 0)
    slots = _slots(case["size"], case["megabytes"])
    ways: dict[str, Way] = {name: _draws(draw, shapes, block, slots, windows) for name, draw in _DRAWS.items()}
    ways[_GATHER] = _gather(shapes, slots * RECORDS * ENVIRONMENTS, windows)
    return contest(world, ways, seconds=case["seconds"], repeats=case["repeats"], first=20)


def _draws(draw: Draw, shapes: PolicyShapes, block: Message, slots: int, windows: int) -> Way:
    """Draws from a full store and, by priority, says something of what was drawn."""
    layout = block_layout(shapes, RECORDS, ENVIRONMENTS, 1)
    generator = np.random.default_rng(0)
    store = BlockStore(layout, _WINDOW, slots=slots, draw=draw, generator=generator, first_priority=None)
    block.fields["valid"][...] = True
    for number in range(slots):
        block.header[BlockHeader.SEQUENCE] = number
        store.add(block)
    fields = Message.allocate(window_layout(shapes, _WINDOW.records, windows), 0).fields
    priorities = generator.random(windows, np.float32)

    def work(count: int) -> None:
        for _ in range(count):
            store.draw(fields)
            if isinstance(draw, PrioritizedDraw):
                store.update(fields[SLOT], fields[GENERATION], priorities)

    return work


def _gather(shapes: PolicyShapes, records: int, windows: int) -> Way:
    """Takes the same fields of random records."""
    fields = Message.allocate(window_layout(shapes, _WINDOW.records, windows), 0).fields
    names = [name for name, array in fields.items() if array.ndim > 1]
    # Memory that was never written is one page of zeros, which costs nothing to read.
    sources = {name: np.ones((records, *fields[name].shape[2:]), fields[name].dtype) for name in names}
    choices = np.random.default_rng(0).integers(records, size=(_PLACES, _WINDOW.records + 1, windows))

    def work(count: int) -> None:
        for number in range(count):
            places = choices[number % _PLACES]
            for name in names:
                out = fields[name]
                np.take(sources[name], places[: len(out)], axis=0, out=out, mode="clip")

    return work


if __name__ == "__main__":
    rank_main(_measure)
