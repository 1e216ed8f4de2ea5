"""YAML text to plain data that remembers where each value was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from srlhpc.errors import UserError
from srlhpc.specs.yaml_scalars import AMBIGUOUS, SCALARS, scalar_value

MOST_NODES = 20_000
"""Values that one file may hold, aliases counted as often as they are used."""
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
    """Scalars of YAML 1.2, and refuses what others take for something else: see `srlhpc.specs.yaml_scalars`."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Same as in the base class, but gives up early on files that are far too large."""
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


def _quoted_if_broken(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """Text with a line break of Unicode's in double quotes, where it is escaped: elsewhere it is read as a space."""
    style = '"' if any(character in text for character in "\x85\u2028\u2029") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _quoted_if_broken)
for _tag, (_pattern, _first) in SCALARS.items():
    for _class in (Loader, Dumper):
        _class.add_implicit_resolver(_tag, _pattern, _first)


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


def _is_merge(node: yaml.Node) -> bool:
    """Whether a key is `<<`, not quoted."""
    return isinstance(node, yaml.ScalarNode) and node.value == "<<" and node.style is None


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
            return self._scalar(node, keys)
        finally:
            self._open.pop()

    def _items(self, node: yaml.MappingNode, keys: Keys) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        own = [(key_node, value_node) for key_node, value_node in node.value if not _is_merge(key_node)]
        names = {str(key_node.value) for key_node, _ in own}
        for merge, merged in node.value:
            if _is_merge(merge):
                yield from self._merged(merge, merged, keys, names)
        for key_node, value_node in own:
            key = self._key(key_node)
            if key in first:
                raise self._refusal(key_node, f"duplicate key '{key}'; it is also in line {first[key]}: leave one out")
            first[key] = key_node.start_mark.line + 1
            self._places[*keys, key] = self._place(key_node)
            yield key, self.value(value_node, (*keys, key))

    def _key(self, node: yaml.Node) -> str:
        # `on:` and `no:` are keys as they stand here.
        key = node.value if node.tag == AMBIGUOUS and str(node.value).isalpha() else self.value(node, ())
        if not isinstance(key, str):
            raise self._refusal(node, f"key {key!r} must be text; quote it")
        return key

    def _merged(self, merge: yaml.Node, node: yaml.Node, keys: Keys, names: set[str]) -> Iterator[tuple[str, Any]]:
        """The items of the mappings of a merge key `<<` that are not among `names`; an earlier mapping wins."""
        for mapping in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(mapping, yaml.MappingNode):
                raise self._refusal(merge, "'<<' merges mappings; write '<<: *anchor' of a mapping, or a list of such")
            places = dict(self._places)
            items = self.value(mapping, keys)
            for name, value in items.items():
                if name not in names:
                    names.add(name)
                    yield name, value
                else:
                    # A key that is written here wins over the merged one, and keeps its own place.
                    self._forget(places, (*keys, name))

    def _forget(self, before: dict[Keys, Place], keys: Keys) -> None:
        for at in [at for at in self._places if at[: len(keys)] == keys]:
            del self._places[at]
        self._places.update({at: place for at, place in before.items() if at[: len(keys)] == keys})

    def _element(self, node: yaml.Node, keys: Keys) -> Any:
        self._places[keys] = self._place(node)
        return self.value(node, keys)

    def _scalar(self, node: yaml.Node, keys: Keys) -> Any:
        try:
            return scalar_value(node.tag, str(node.value))
        except ValueError as error:
            path = ".".join(str(key) for key in keys)
            raise self._refusal(node, f"{path}: {error}" if path else str(error)) from None

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._override, self._source, 0 if self._override else node.start_mark.line + 1)

    def _refusal(self, node: yaml.Node, message: str) -> UserError:
        return UserError(f"{self._place(node)}: {message}")
