from __future__ import annotations

import json

from srlhpc.bench.rows import Reference, Row, Spread, number_text, table

ROW = Row(
    "stream",
    "8 KiB",
    Spread.of([1.0, 4.0, 2.0]),
    "GB/s",
    Spread.of([0.5]),
    "CPU-s per GB",
    {"bare": Reference(Spread.of([4.0]), Spread.of([0.25])), "limit": Reference(rate=Spread.of([8.0]))},
    {"cores": 1.25},
)


def test_spread_is_median_and_range() -> None:
    assert Spread.of([1.0, 4.0, 2.0]) == (2.0, 1.0, 4.0)


def test_row_as_plain_data_has_medians_ranges_units_and_what_was_beside_it() -> None:
    assert json.loads(json.dumps(ROW.to_json())) == {
        "name": "stream",
        "size": "8 KiB",
        "rate": 2.0,
        "rate_range": [1.0, 4.0],
        "rate_unit": "GB/s",
        "cpu_seconds": 0.5,
        "cpu_seconds_range": [0.5, 0.5],
        "cpu_seconds_unit": "CPU-s per GB",
        "reference": {"bare": {"rate": 4.0, "cpu_seconds": 0.25}, "limit": {"rate": 8.0, "cpu_seconds": None}},
        "details": {"cores": 1.25},
    }


def test_table_shows_the_row_and_its_ratios_to_what_was_beside_it() -> None:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table([ROW])]
    assert cells[2] == ["stream", "8 KiB", "2 (1-4) GB/s", "0.5 CPU-s per GB", "cores 1.25"]
    assert cells[3] == ["beside: bare", "8 KiB", "4 GB/s", "0.25 CPU-s per GB", "0.50 x its rate, 2.00 x its CPU"]
    assert cells[4] == ["beside: limit", "8 KiB", "8 GB/s", "-", "0.25 x its rate"]


def test_lines_of_a_table_have_the_same_length() -> None:
    assert len({len(line) for line in table([ROW])}) == 1


def test_numbers_have_three_digits_or_all_before_the_point() -> None:
    assert [number_text(value) for value in (0.12345, 12.345, 1234.5)] == ["0.123", "12.3", "1,234"]
