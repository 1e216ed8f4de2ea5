"""What pydantic found, in the words of a job file: place, path, what was found, what it must be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic_core import ErrorDetails

from srlhpc.errors import counted, did_you_mean
from srlhpc.specs.yaml_source import Keys, Place, Written

_OWN_WORDS = ("unknown_key", "refused")
"""Error types of our validators; their message is a sentence already."""

_LONGEST_SHOWN = 120

_MUST_BE = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
    "finite_number": "a finite number",
}


class Problem(NamedTuple):
    """One line of what is wrong; sorts by place."""

    place: Place
    keys: Keys
    message: str

    def __str__(self) -> str:
        path = ".".join(str(key) for key in self.keys)
        return f"{self.place}: {path}: {self.message}" if path else f"{self.place}: {self.message}"


def problems(errors: Iterable[ErrorDetails], written: Written) -> list[Problem]:
    """Every problem once, sorted by the place where it was written."""
    by_keys: dict[Keys, list[ErrorDetails]] = {}
    for error in errors:
        by_keys.setdefault(_keys(error, written.data), []).append(error)
    found = [
        Problem(written.place(keys), keys, message)
        for keys, group in by_keys.items()
        if not _is_other_alternative(keys, group, by_keys)
        for message in _messages(group)
    ]
    return sorted(found, key=lambda problem: (problem.place, [str(key) for key in problem.keys]))


def _keys(error: ErrorDetails, data: Any) -> Keys:
    """The path of an error in the data: pydantic also counts the alternatives of a union as a step."""
    keys: list[str | int] = []
    for index, key in enumerate(error["loc"]):
        if _holds(data, key):
            keys.append(key)
            data = data[key]
        elif error["type"] == "refused":
            # What is refused need not be written, but may be in an alternative that is.
            if not (isinstance(data, dict) and data.get("kind") == key):
                keys.append(key)
                data = None
        elif error["type"] == "missing" and index == len(error["loc"]) - 1:
            keys.append(key)
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        keys.append(_discriminator(error))
    return tuple(keys)


def _holds(data: Any, key: str | int) -> bool:
    return key in data if isinstance(data, dict) else isinstance(data, list | tuple) and key in range(len(data))


def _discriminator(error: ErrorDetails) -> str:
    return str(error["ctx"]["discriminator"]).strip("'")


def _is_other_alternative(keys: Keys, group: list[ErrorDetails], by_keys: dict[Keys, list[ErrorDetails]]) -> bool:
    """Whether a mapping is only said to be no scalar, while its own keys have problems."""
    is_mapping = all(isinstance(error["input"], dict) and error["type"] in _MUST_BE for error in group)
    return is_mapping and any(other[: len(keys)] == keys and other != keys for other in by_keys)


def _messages(group: list[ErrorDetails]) -> list[str]:
    alternatives = list(dict.fromkeys(_wanted(error) for error in group))
    if len(alternatives) > 1 and all(alternatives):
        return [f"is {shown(group[0]['input'])}; it must be {_either([wanted for wanted in alternatives if wanted])}."]
    return list(dict.fromkeys(explain(error) for error in group))


def explain(error: ErrorDetails) -> str:
    """What was found and what it must be, for one error of pydantic."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind in _OWN_WORDS:
        return error["msg"]
    if kind == "value_error":
        return str(context["error"])
    if kind in ("missing", "union_tag_not_found"):
        return "is missing."
    if kind == "union_tag_invalid":
        known = [tag.strip(" '") for tag in context["expected_tags"].split(",")]
        return f"is {context['tag']!r}{did_you_mean(context['tag'], known)}"
    if kind in ("too_short", "too_long"):
        bound = f"at least {context['min_length']}" if kind == "too_short" else f"at most {context['max_length']}"
        return f"has {counted(context['actual_length'], 'entry', 'entries')}; it must have {bound}."
    if wanted := _wanted(error):
        return f"is {shown(value)}; it must be {wanted}{_hint(kind, value)}."
    return f"is {shown(value)}; {error['msg'][:1].lower()}{error['msg'][1:]}."


def _wanted(error: ErrorDetails) -> str | None:
    """What a value must be, for the errors that are about one."""
    kind, context = error["type"], error.get("ctx", {})
    return _bound(kind, context) or _literal(kind, context) or _MUST_BE.get(kind)


def _bound(kind: str, context: dict[str, Any]) -> str | None:
    match kind:
        case "greater_than" if isinstance(context["gt"], int):
            return f"at least {context['gt'] + 1}"
        case "greater_than":
            return f"above {context['gt']:g}"
        case "greater_than_equal":
            return f"at least {context['ge']:g}"
        case "less_than" if isinstance(context["lt"], int):
            return f"at most {context['lt'] - 1}"
        case "less_than":
            return f"below {context['lt']:g}"
        case "less_than_equal":
            return f"at most {context['le']:g}"
    return None


def _literal(kind: str, context: dict[str, Any]) -> str | None:
    if kind != "literal_error":
        return None
    known = [word.strip(" '") for word in context["expected"].replace(" or ", ", ").split(",")]
    return _either([repr(word) for word in known])


def _hint(kind: str, value: Any) -> str:
    # One of several kinds; other mappings have no such key.
    if kind == "model_attributes_type" and isinstance(value, str):
        return f" (such as {{kind: {value}}})"
    if kind in ("int_type", "int_from_float") and isinstance(value, float) and value.is_integer():
        return f" (write {int(value):_})"
    if kind == "string_type" and isinstance(value, int | float | bool):
        return f" (write '{shown(value)}')"
    return _number_in(value) if kind in ("int_type", "float_type") and isinstance(value, str) else ""


def _number_in(text: str) -> str:
    """What to write for a number or a time of day in a spelling that YAML takes for text."""
    if re.fullmatch(r"\d+(?::[0-5]?\d){1,2}", text):
        parts = [int(part) for part in text.split(":")]
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        total = 3600 * hours + 60 * minutes + seconds
        return f" ({total / 60:g} minutes, {total} seconds, if it is hours:minutes{':seconds' * (len(parts) > 2)})"
    if re.fullmatch(r"[-+]?\d{1,3}(?:[, ']\d{3})+", text):
        return f" (write {re.sub('[, ' + chr(39) + ']', '_', text)})"
    return ""


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def shown(value: Any) -> str:
    """A value as YAML would show it, long ones cut, mappings and lists by their kind only."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case tuple() | list():
            return "a list"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
