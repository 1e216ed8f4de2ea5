"""YAML to data with places, and back."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from srlhpc.objects import UserError
from srlhpc.specs.yaml_source import MOST_NODES, Dumper, Place, parse

INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))
KEYS = st.text("abcxyz_-.~0129", max_size=8)
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(KEYS, inner, max_size=4)
)


def lists(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: lists(value) for key, value in data.items()}
    return [lists(value) for value in data] if isinstance(data, tuple) else data


@given(DATA)
def test_data_when_dumped_and_parsed_then_the_same(data: Any) -> None:
    text = yaml.dump(lists(data), Dumper=Dumper, allow_unicode=True, sort_keys=False)
    assert repr(parse(text, "x.yaml").data) == repr(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("10_000_000", 10_000_000),
        ("1_000.5", 1000.5),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("yes", "yes"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1e", "1e"),
        ("'3'", "3"),
        ("True", True),
        ("~", None),
        ("", None),
    ],
)
def test_scalar_when_parsed_then_as_in_yaml_1_2(text: str, value: object) -> None:
    found = parse(text, "x.yaml").data
    assert (found, type(found)) == (value, type(value))


def test_values_when_parsed_then_their_lines_are_known() -> None:
    written = parse("a:\n  b: 1\n  c:\n  - 2\n  - 3\n", "x.yaml")
    assert written.place(("a", "b")) == Place(False, "x.yaml", 2)
    assert written.place(("a", "c", 1)) == Place(False, "x.yaml", 5)


def test_place_of_what_was_not_written_when_asked_then_that_of_the_mapping_around_it() -> None:
    assert str(parse("a:\n  b: 1\n", "x.yaml").place(("a", "missing", "deeper"))) == "x.yaml:1"


def test_alias_when_used_twice_then_its_value_twice() -> None:
    assert parse("a: &x [1]\nb: *x\n", "x.yaml").data == {"a": (1,), "b": (1,)}


def test_aliases_when_they_multiply_beyond_measure_then_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    with pytest.raises(UserError, match=rf"^x\.yaml:\d: has more than {MOST_NODES} values; use fewer aliases$"):
        parse("\n".join(lines), "x.yaml")
