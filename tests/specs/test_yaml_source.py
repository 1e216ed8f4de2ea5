"""YAML to data with places, and back."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from srlhpc.errors import UserError
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
@example("a\x85b")
@example({"key": ("\u2028", "x\u2029 y")})
def test_data_survives_dump_and_parse(data: Any) -> None:
    text = yaml.dump(lists(data), Dumper=Dumper, allow_unicode=True, sort_keys=False)
    assert repr(parse(text, "x.yaml").data) == repr(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("1e5", 1e5),
        ("10_000_000", 10_000_000),
        ("1_000.5", 1000.5),
        ("1_", "1_"),
        (".5", 0.5),
        ("5.", 5.0),
        ("+5", 5),
        ("-0", 0),
        ("0.5", 0.5),
        ("007.5", 7.5),
        ("-.inf", float("-inf")),
        ("0x1F", 31),
        ("0X1f", 31),
        ("-0x10", -16),
        ("0o17", 15),
        ("0O10", 8),
        ("0b11", 3),
        ("0b12", "0b12"),
        ("1:30", "1:30"),
        ("12:30:00", "12:30:00"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01 12:00:00", "2024-01-01 12:00:00"),
        ("1e", "1e"),
        ("y", "y"),
        ("'3'", "3"),
        ("'010'", "010"),
        ("!!str 010", "010"),
        ("!!float 5", 5.0),
        ("'no'", "no"),
        ("none", "none"),
        ("True", True),
        ("~", None),
        ("", None),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    found = parse(text, "x.yaml").data
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("010", "has a leading zero, which is octal to some and decimal to others; write 10, or 0o10 for octal"),
        ("-0_17", "write -17, or -0o17 for octal"),
        ("08", "has a leading zero, which some take for octal; write 8, or quote it"),
        ("!!int 010", "write 10, or 0o10"),
        ("yes", "is true in old YAML and text in new; write true, or quote it if it is text"),
        ("Off", "is false in old YAML and text in new; write false"),
        ("!!bool no", "write false"),
        ("!!bool 1", "is no bool; correct it"),
        ("!!null x", "is no null; correct it"),
        ("!!int 1.5", "is no int; correct it"),
        ("None", "is Python's word; write null"),
        ("inf", "is text in YAML; write .inf"),
        ("-Infinity", "write -.inf"),
        ("nan", "write .nan"),
        ("1e400", "is no float of 64 bits"),
        ("0xffffffffffffffffff", "is no int of 64 bits"),
    ],
)
def test_ambiguous_word_is_refused(word: str, told: str) -> None:
    with pytest.raises(UserError, match=rf"^x\.yaml:2: a\.b: '.*' .*{re.escape(told)}"):
        parse(f"a:\n  b: {word}\n", "x.yaml")
    with pytest.raises(UserError, match=re.escape(told)):
        parse(word, "--set a=1", override=True)


def test_merged_mapping_lies_below_what_is_written_beside_it() -> None:
    text = "x: &x {a: 1, b: {c: 2}}\ny: &y {a: 3, d: 4}\none:\n  b: 5\n  <<: *x\ntwo: {<<: [*x, *y], a: 6}\n"
    written = parse(text, "x.yaml")
    assert written.data["one"] == {"a": 1, "b": 5}
    assert written.data["two"] == {"a": 6, "b": {"c": 2}, "d": 4}
    lines = {keys: written.place(keys).line for keys in (("one", "a"), ("one", "b"), ("two", "b", "c"), ("two", "d"))}
    assert lines == {("one", "a"): 1, ("one", "b"): 4, ("two", "b", "c"): 1, ("two", "d"): 2}


def test_quoted_merge_sign_is_a_key() -> None:
    assert parse("'<<': 1", "x.yaml").data == {"<<": 1}


@pytest.mark.parametrize("text", ["a: {<<: 5}", "x: &x 1\na: {<<: *x}", "x: &x [1]\na: {<<: *x}"])
def test_merge_of_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"^x\.yaml:\d: '<<' merges mappings; write"):
        parse(text, "x.yaml")


def test_keys_that_look_like_truth_are_text() -> None:
    assert parse("on: 1\nno: 2", "x.yaml").data == {"on": 1, "no": 2}


def test_lines_of_values_are_known() -> None:
    written = parse("a:\n  b: 1\n  c:\n  - 2\n  - 3\n", "x.yaml")
    assert written.place(("a", "b")) == Place(False, "x.yaml", 2)
    assert written.place(("a", "c", 1)) == Place(False, "x.yaml", 5)


def test_place_of_an_unwritten_value_is_that_of_the_mapping_around_it() -> None:
    assert str(parse("a:\n  b: 1\n", "x.yaml").place(("a", "missing", "deeper"))) == "x.yaml:1"


def test_alias_used_twice_gives_its_value_twice() -> None:
    assert parse("a: &x [1]\nb: *x\n", "x.yaml").data == {"a": (1,), "b": (1,)}


def test_aliases_that_multiply_beyond_measure_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    with pytest.raises(UserError, match=rf"^x\.yaml:\d: has more than {MOST_NODES} values; use fewer aliases$"):
        parse("\n".join(lines), "x.yaml")
