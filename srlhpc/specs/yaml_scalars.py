"""What a word of a YAML file stands for: as in YAML 1.2, where all readers agree; else it is refused.

`3e-4` is a number, `2024-01-01` and `12:30` are text, underscores may group digits. Old and new YAML, or YAML and
Python, take `010`, `yes`, `None` and `inf` for different things; quoted, they are text.
"""

from __future__ import annotations

import math
import re
from typing import Any

_MOST_INTEGER = 2**63 - 1
_LONGEST_SHOWN = 60
_YAML = "tag:yaml.org,2002:"
_INTEGER, _FLOAT, _BOOL, _NULL, _TEXT = (_YAML + kind for kind in ("int", "float", "bool", "null", "str"))

AMBIGUOUS = "tag:srlhpc,ambiguous"
"""Tag of the words that are refused."""

_REMEDIES = {
    r"[-+]?0[0-7_]+": "has a leading zero, which is octal to some and decimal to others; write {sign}{digits}, or "
    "{sign}0o{digits} for octal",
    r"[-+]?0[0-9_]+": "has a leading zero, which some take for octal; write {sign}{digits}",
    r"yes|Yes|YES|on|On|ON": "is true in old YAML and text in new; write true",
    r"no|No|NO|off|Off|OFF": "is false in old YAML and text in new; write false",
    r"None": "is Python's word; write null",
    r"[-+]?(?:inf|Inf|INF|infinity|Infinity)": "is text in YAML; write {sign}.inf",
    r"nan|NaN|NAN": "is text in YAML; write .nan",
}
"""Pattern of a word to what is wrong with it and what to write."""

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
# The first that fits counts.
SCALARS = {
    _NULL: (re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    _BOOL: (re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    AMBIGUOUS: (re.compile(rf"(?:{'|'.join(_REMEDIES)})$"), list("yYnNoOiI-+0123456789")),
    _INTEGER: (
        re.compile(rf"[-+]?(?:{_DIGITS}|0[oO][0-7]+|0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0[bB][01]+(?:_[01]+)*)$"),
        list("-+0123456789"),
    ),
    _FLOAT: (
        re.compile(
            rf"(?:[-+]?(?:\.{_DIGITS}|{_DIGITS}(?:\.(?:{_DIGITS})?)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
}
"""Tag to the pattern of the words that have it, and the characters that they begin with."""


def scalar_value(tag: str, text: str) -> Any:
    """The value of a word with its tag, written or found by `SCALARS`.

    Raises:
        ValueError: it has none, or not one that all agree on; says what to write.
    """
    shown = f"'{text[:_LONGEST_SHOWN]}'"
    if tag == _TEXT:
        return text
    if tag not in SCALARS:
        raise ValueError(f"unknown tag '{tag}'; leave it out, or quote text that begins with '!'")
    if remedy := _remedy(text):
        raise ValueError(f"{shown} {remedy}, or quote it if it is text")
    kind = tag.removeprefix(_YAML)
    if not SCALARS[tag][0].match(text):
        raise ValueError(f"{shown} is no {kind}; correct it, or leave its tag out")
    value = _value(tag, text.replace("_", "").lower())
    if value is OverflowError:
        raise ValueError(f"{shown} is no {kind} of 64 bits; quote it if it is text")
    return value


def _value(tag: str, text: str) -> Any:
    """The value of a word that fits its tag; the class OverflowError if it is too large."""
    if tag == _NULL:
        return None
    if tag == _BOOL:
        return text == "true"
    if tag == _INTEGER:
        integer = int(text, 0)
        return integer if abs(integer) <= _MOST_INTEGER else OverflowError
    number = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    return OverflowError if math.isinf(number) and "inf" not in text else number


def _remedy(text: str) -> str | None:
    remedy = next((remedy for pattern, remedy in _REMEDIES.items() if re.fullmatch(pattern, text)), None)
    if remedy is None:
        return None
    sign = "-" if text.startswith("-") else ""
    return remedy.format(sign=sign, digits=text.lstrip("+-").replace("_", "").lstrip("0") or "0")
