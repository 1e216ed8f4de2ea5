"""Small recordings whose numbers tell where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from srlhpc.data.atomic import written_aside
from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.episode_format import recorded_fields, row_type
from srlhpc.data.episode_writer import EpisodeWriter, RecordedPolicy, RecordedSequence
from srlhpc.data.row_spool import Rows
from srlhpc.environment import ArraySpec, Continuous, Kind, Spaces, Stack

FRAMES = 3
KIND = Kind(
    "agent",
    ("a", "b"),
    {"obs": ArraySpec((2,), "float32"), "screen": ArraySpec((FRAMES, 4), "uint8"), "a/b": ArraySpec((), "float32")},
    Continuous(1),
    stacks={"screen": Stack(FRAMES, "zeros")},
)
OLDER = {"obs.screen": np.full((FRAMES - 1, 4), 200, np.uint8)}
"""Frames before the first of every sequence."""
FIELDS = recorded_fields(PolicyShapes(KIND, {}, {"value": ArraySpec((), "float32")}))


def rows(records: int, first: int) -> Rows:
    """A sequence whose row t is t + `first` in every field of records, and its last row, truncated."""
    made = np.zeros(records + 1, row_type(FIELDS))
    numbers = np.arange(records + 1) + first
    for name in ("obs.obs", "obs.screen"):
        made[name] = numbers.reshape(-1, *[1] * (made[name].ndim - 1))
    made["obs.a/b"] = numbers
    for name in ("rewards", "log_probs", "out.value"):
        made[name][:-1] = numbers[:-1]
    made["actions"][:-1, 0] = numbers[:-1]
    made["truncated"][records - 1] = True
    return made


def write(path: Path, lengths: Iterable[int], *, at_once: int = 1000) -> None:
    """A recording of the policy `only` with sequences of so many records; they count rows of the whole file.

    Frames before the first are 200.
    """
    with (
        written_aside(path) as file,
        EpisodeWriter(file, path, Spaces((KIND,)), {"only": RecordedPolicy("agent", FIELDS)}, {"run": "x"}) as writer,
    ):
        first = 0
        for number, length in enumerate(lengths):
            pieces = _pieces(rows(length, first), at_once)
            writer.add("only", RecordedSequence(number % 2, number, float(length), OLDER, pieces))
            first += length + 1
            assert writer.records == first - number - 1


def _pieces(all_rows: Rows, at_once: int) -> Iterator[Rows]:
    for start in range(0, len(all_rows), at_once):
        yield all_rows[start : start + at_once]
