"""Laying one set of written values over another: what a file says over its base, and `--set` over both."""

from __future__ import annotations

from typing import Any

from srlhpc.errors import UserError, counted, did_you_mean
from srlhpc.specs.problems import shown
from srlhpc.specs.yaml_source import Keys, Place, Written, parse

NAMING_KEYS = ("kind", "factory")
"""Keys that name a module or a variant: the other keys of their mapping mean something else when they change."""


def overlay(base: Written, over: Written) -> tuple[Written, list[str]]:
    """`over` laid on `base`: mappings are merged, everything else is replaced.

    Where `over` changes a `kind` or `factory`, the base's other keys of that mapping are dropped.

    Returns:
        The merged values, and a sentence for every mapping whose keys were dropped.
    """
    notes: list[str] = []
    merged = Written(base.data, dict(base.places))
    merged.data = _merge(merged, base.data, over, over.data, (), notes)
    merged.places.update(over.places)
    return merged, notes


def _merge(merged: Written, below: Any, over: Written, above: Any, keys: Keys, notes: list[str]) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        merged.forget(keys)
        return above
    # The keys below belong to the module or variant that they were written for.
    if any(below.get(name, above.get(name)) != above.get(name) for name in NAMING_KEYS if name in above):
        dropped = [key for key in below if key not in above]
        _forget(merged, keys, list(below), dropped, over.place(keys), notes)
        return above
    result = dict(below)
    for key, value in above.items():
        result[key] = _merge(merged, below.get(key), over, value, (*keys, key), notes)
    return result


def _forget(merged: Written, keys: Keys, every: list[str], dropped: list[str], place: Place, notes: list[str]) -> None:
    for key in every:
        merged.forget((*keys, key))
    if dropped:
        path = ".".join(str(key) for key in keys)
        notes.append(f"{place}: {path} names another module or variant; dropped its {', '.join(dropped)}")


def apply(written: Written, override: str) -> tuple[Written, list[str]]:
    """Applies one `path=value`; the value is YAML, list elements are named by their number.

    Raises:
        UserError: there is no `=`, the value is no YAML, or the path cannot exist.
    """
    source = f"--set {override}"
    path, equals, text = override.partition("=")
    if not equals or not path.strip():
        raise UserError(f"{source}: is no override; write --set path=value, for example --set actors.ranks=2")
    keys = _path(written, path.strip(), source)
    value = parse(text, source, override=True)
    changed = Written(_copied(written.data), dict(written.places))
    changed.forget(keys)
    place = Place(True, source, 0)
    notes: list[str] = []
    parent = _parent(changed, keys, place)
    if isinstance(parent, dict) and keys[-1] in NAMING_KEYS and parent.get(str(keys[-1]), value.data) != value.data:
        dropped = [key for key in parent if key != keys[-1]]
        _forget(changed, keys[:-1], list(parent), dropped, place, notes)
        parent.clear()
    parent[keys[-1]] = value.data
    changed.places.update({(*keys, *at): place for at in value.places})
    return changed, notes


def _path(written: Written, path: str, source: str) -> Keys:
    keys: list[str | int] = []
    node = written.data
    for word in path.split("."):
        where = ".".join(str(key) for key in keys)
        if isinstance(node, list | tuple):
            if not word.isdecimal() or int(word) >= len(node):
                entries = counted(len(node), "entry", "entries")
                raise UserError(f"{source}: {where} has {entries}, numbered from 0; there is no '{word}'")
            keys.append(int(word))
            node = node[int(word)]
        elif node is None and word.isdecimal():
            raise UserError(f"{source}: {where} is not set, so there is no '{word}' in it; set the whole list")
        elif node is None or isinstance(node, dict):
            keys.append(word)
            node = (node or {}).get(word)
        else:
            raise UserError(f"{source}: {where} is {shown(node)}, which has no '{word}'")
    policies = written.data.get("policies")
    if keys[0] == "policies" and len(keys) > 2 and isinstance(policies, dict) and keys[1] not in policies:
        raise UserError(f"{source}: no policy '{keys[1]}'{did_you_mean(str(keys[1]), list(policies))}")
    return tuple(keys)


def _parent(written: Written, keys: Keys, place: Place) -> Any:
    """The mapping or list that holds the last key, made where it does not exist yet."""
    node = written.data
    for index, key in enumerate(keys[:-1]):
        if isinstance(node, dict) and node.get(str(key)) is None:
            node[str(key)] = {}
            written.places[keys[: index + 1]] = place
        node = node[key]
    return node


def _copied(node: Any) -> Any:
    """A copy with lists in place of tuples, to be changed."""
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(value) for value in node] if isinstance(node, list | tuple) else node
