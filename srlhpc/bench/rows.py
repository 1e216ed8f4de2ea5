"""What a benchmark gives: rows of medians and ranges, as a table or as plain data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Spread(NamedTuple):
    """Median and range of the repeats."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Reference:
    """What was measured beside a row in the same run, in the row's units; None: it has no such figure."""

    rate: Spread | None = None
    cpu_seconds: Spread | None = None


@dataclass(frozen=True)
class Row:
    """One case."""

    name: str
    size: str
    """What tells this case from the others of its name."""
    rate: Spread
    rate_unit: str
    cpu_seconds: Spread
    cpu_unit: str
    reference: Mapping[str, Reference] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)
    """Whatever else was seen; the names have their units."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "size": self.size,
            "rate": self.rate.median,
            "rate_range": [self.rate.low, self.rate.high],
            "rate_unit": self.rate_unit,
            "cpu_seconds": self.cpu_seconds.median,
            "cpu_seconds_range": [self.cpu_seconds.low, self.cpu_seconds.high],
            "cpu_seconds_unit": self.cpu_unit,
            "reference": {
                name: {
                    "rate": other.rate.median if other.rate else None,
                    "cpu_seconds": other.cpu_seconds.median if other.cpu_seconds else None,
                }
                for name, other in self.reference.items()
            },
            "details": dict(self.details),
        }


_TITLES = ("what", "size", "rate: median (range)", "CPU: median (range)", "also")


def table(rows: Sequence[Row]) -> list[str]:
    """A Markdown table with aligned columns; what was measured beside a row follows it."""
    cells = [_TITLES, *(line for row in rows for line in _lines(row))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_TITLES))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _lines(row: Row) -> list[tuple[str, ...]]:
    also = ", ".join(f"{name} {number_text(value)}" for name, value in row.details.items())
    own = (row.name, row.size, _figure(row.rate, row.rate_unit), _figure(row.cpu_seconds, row.cpu_unit), also)
    return [own, *(_reference_line(row, name, other) for name, other in row.reference.items())]


def _reference_line(row: Row, name: str, other: Reference) -> tuple[str, ...]:
    said = []
    if other.rate and other.rate.median:
        said.append(f"{row.rate.median / other.rate.median:.2f} x its rate")
    if other.cpu_seconds and other.cpu_seconds.median:
        said.append(f"{row.cpu_seconds.median / other.cpu_seconds.median:.2f} x its CPU")
    rate = _figure(other.rate, row.rate_unit) if other.rate else "-"
    cpu = _figure(other.cpu_seconds, row.cpu_unit) if other.cpu_seconds else "-"
    return (f"  beside: {name}", row.size, rate, cpu, ", ".join(said))


def _figure(spread: Spread, unit: str) -> str:
    text = number_text(spread.median)
    if spread.low != spread.high:
        text += f" ({number_text(spread.low)}-{number_text(spread.high)})"
    return f"{text} {unit}"


def number_text(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
