"""Words of job files and profiles that have been renamed: the former ones are understood, and reported once.

A class of settings declares its former words as `former_keys` and `former_values`. What a file says in them is
translated while it is validated; `collecting` gives those who read a file what was translated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from srlhpc.specs.yaml_source import Keys, Written

_found: ContextVar[list[Former] | None] = ContextVar("former words", default=None)


class Former(NamedTuple):
    """A word that is called otherwise now."""

    key: str
    """The key as it was written."""
    value: str | None
    """The former value; None if it is the key that has another name."""
    now: str

    def keys(self, written: Written) -> Keys:
        """Where it was written."""
        return next(
            (keys for keys in written.places if keys and keys[-1] == self.key and self._is_at(keys, written)), ()
        )

    def note(self, written: Written) -> str:
        """A sentence with the place and the new word."""
        keys = self.keys(written)
        path = ".".join(map(str, keys)) or self.key
        what = path if self.value is None else f"{path}: {self.value}"
        return f"{written.place(keys)}: {what} is called {self.now} now; it is still understood, write the new word"

    def _is_at(self, keys: Keys, written: Written) -> bool:
        found = written.data
        for key in keys:
            found = found[key]
        return self.value in (None, found)


@contextmanager
def collecting() -> Iterator[list[Former]]:
    """Fills the list with the former words that are translated inside, each once."""
    found: list[Former] = []
    token = _found.set(found)
    try:
        yield found
    finally:
        _found.reset(token)


def translated(
    data: dict[str, Any], keys: Mapping[str, str], values: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The data in today's words, and the former key of each that was translated.

    Where both words of a key are given, today's counts: an override says it to a file that says the former.

    Args:
        data: as it was written.
        keys: former keys to those of today.
        values: for a key of today, former values to those of today.
    """
    former = {new: old for old, new in keys.items() if old in data}
    result = {key: value for key, value in data.items() if key not in keys}
    for new, old in former.items():
        _report(Former(old, None, new))
        result.setdefault(new, data[old])
    for key, words in values.items():
        value = result.get(key)
        if isinstance(value, str) and value in words:
            _report(Former(former.get(key, key), value, words[value]))
            result[key] = words[value]
    return result, former


def _report(former: Former) -> None:
    found = _found.get()
    if found is not None and former not in found:
        found.append(former)
