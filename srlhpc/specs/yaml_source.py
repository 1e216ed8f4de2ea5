"""YAML text to plain data that remembers where each value was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from srlhpc.objects import UserError

MOST_NODES = 20_000
"""Values that one file may hold, aliases counted as often as they are used."""
_MOST_INTEGER = 2**63 - 1
_LONGEST_SOURCE = 120

_REMEDIES = {
    "mapping values": "quote text that holds ': '",
    "\\t": "indent by spaces, not by tabs",
    "cannot start any token": "quote text that begins so",
    "another document": "write each job or profile into a file of its own",
    "undefined alias": "quote text that begins with '*'",
    "special characters": "write it as text in UTF-8, without control characters",
}
"""What YAML complains of, and what helps."""

Keys = tuple[str | int, ...]


class Place(NamedTuple):
    """Where something was written; sorts overrides behind files, then by line."""

    override: bool
    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass
class Written:
    """What was written: mappings, tuples and scalars in `data`, and the place of every value by its keys."""

    data: Any
    places: dict[Keys, Place]

    def place(self, keys: Keys) -> Place:
        """Where `keys` was written, or the nearest mapping around it."""
        while keys and keys not in self.places:
            keys = keys[:-1]
        return self.places[keys]

    def forget(self, keys: Keys) -> None:
        """Drops the places at and below `keys`."""
        self.places = {at: place for at, place in self.places.items() if at[: len(keys)] != keys}


class Loader(yaml.SafeLoader):
    """Scalars of YAML 1.2: `3e-4` is a number, `yes` and `2024-01-01` are text. Underscores may group digits."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As its base's, and gives up early on files that are far too large."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise _TooManyError
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class _TooManyError(Exception):
    """More values than a file may hold."""


class Dumper(yaml.SafeDumper):
    """Writes what `Loader` reads: it quotes text that would be read as something else."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def ignore_aliases(self, _data: Any) -> bool:
        return True


_SCALARS = {
    "null": (re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    "int": (re.compile(r"(?:[-+]?[0-9][0-9_]*|0o[0-7_]+|0x[0-9a-fA-F_]+)$"), list("-+0123456789")),
    "float": (
        re.compile(
            r"(?:[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
}
for _tag, (_pattern, _first) in _SCALARS.items():
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)
    Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def parse(text: str, source: str, *, override: bool = False) -> Written:
    """The data of one YAML document; lists become tuples.

    Args:
        text: the document.
        source: what errors name: the file, or the whole override.
        override: `text` is the value of an override; its places have no lines.

    Raises:
        UserError: `text` is no YAML, or has duplicate keys, keys that are no text, or unknown tags.
    """
    source = source if len(source) <= _LONGEST_SOURCE or not override else f"{source[:_LONGEST_SOURCE]}..."
    try:
        node = yaml.compose(text, Loader=Loader)
    except _TooManyError:
        raise UserError(f"{source}: has more than {MOST_NODES} values; is it the right file?") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(override, source, 0 if override or mark is None else mark.line + 1)
        raise UserError(_no_yaml(place, str(error.problem or error.context))) from None
    except yaml.YAMLError as error:
        raise UserError(_no_yaml(source, str(error).splitlines()[0])) from None
    except RecursionError:
        raise UserError(f"{source}: is nested too deeply; is it the right file?") from None
    places: dict[Keys, Place] = {(): Place(override, source, 0 if override else 1)}
    if node is None:
        return Written(None, places)
    return Written(_Construction(source, override, places).value(node, ()), places)


def _no_yaml(place: Place | str, problem: str) -> str:
    remedy = next((remedy for words, remedy in _REMEDIES.items() if words in problem), "correct it there or just above")
    return f"{place}: is no YAML: {problem}; {remedy}"


def _integer(digits: str) -> int:
    value = int(digits, 0) if digits[:2] in ("0o", "0x") else int(digits)
    if abs(value) > _MOST_INTEGER:
        raise ValueError(digits)
    return value


class _Construction:
    def __init__(self, source: str, override: bool, places: dict[Keys, Place]) -> None:
        self._source = source
        self._override = override
        self._places = places
        self._scalars = Loader("")
        self._open: list[int] = []
        self._nodes = 0

    def value(self, node: yaml.Node, keys: Keys) -> Any:
        self._nodes += 1
        if id(node) in self._open:
            raise self._refusal(node, "an alias holds itself; write its value out")
        if self._nodes > MOST_NODES:
            raise self._refusal(node, f"has more than {MOST_NODES} values; use fewer aliases")
        self._open.append(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return dict(self._items(node, keys))
            if isinstance(node, yaml.SequenceNode):
                return tuple(self._element(item, (*keys, index)) for index, item in enumerate(node.value))
            return self._scalar(node)
        finally:
            self._open.pop()

    def _items(self, node: yaml.MappingNode, keys: Keys) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = self.value(key_node, keys)
            if not isinstance(key, str):
                raise self._refusal(key_node, f"key {key!r} must be text; quote it")
            if key in first:
                raise self._refusal(key_node, f"duplicate key '{key}'; it is also in line {first[key]}: leave one out")
            first[key] = key_node.start_mark.line + 1
            self._places[*keys, key] = self._place(key_node)
            yield key, self.value(value_node, (*keys, key))

    def _element(self, node: yaml.Node, keys: Keys) -> Any:
        self._places[keys] = self._place(node)
        return self.value(node, keys)

    def _scalar(self, node: yaml.Node) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        text = str(node.value)
        try:
            match kind:
                case "str":
                    return text
                case "null":
                    return None
                case "bool":
                    return text.lower() == "true"
                case "int":
                    return _integer(text.replace("_", ""))
                case "float":
                    return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").lower())
        except ValueError:
            raise self._refusal(node, f"'{text[:60]}' is no {kind} of 64 bits; quote it if it is text") from None
        raise self._refusal(node, f"unknown tag '{node.tag}'; leave it out, or quote text that begins with '!'")

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._override, self._source, 0 if self._override else node.start_mark.line + 1)

    def _refusal(self, node: yaml.Node, message: str) -> UserError:
        return UserError(f"{self._place(node)}: {message}")
