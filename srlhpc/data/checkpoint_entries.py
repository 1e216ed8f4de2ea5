"""What is inside a checkpoint file: groups are mappings, datasets are leaves. Nothing that we do not write is read.

HDF5 can name other files (soft and external links, virtual datasets, raw data beside the file), compress, and claim
more than the file holds. A checkpoint may come from a stranger, so each entry is looked at before a byte of it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import h5py
import numpy as np

Leaf: TypeAlias = "np.ndarray[Any, Any] | int | float | str | bool | None"
Tree: TypeAlias = Mapping[str, "Tree | Leaf"]

_NUMBERS = "biufc"
"""Kinds of dtype that an array may have."""
_LAYOUTS = (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS)
_DEEPEST = 100
"""Groups within groups; ours have about ten."""


class ForeignEntryError(ValueError):
    """An entry that srlhpc never writes."""


def write_entries(group: h5py.Group, tree: Tree, path: str = "") -> None:
    """Puts a tree into a group.

    Raises:
        TypeError: a key is no string or a leaf has a type that HDF5 has no place for.
    """
    for key, value in tree.items():
        if not isinstance(key, str):
            raise TypeError(f"a checkpoint's keys are strings; {path}/ has {key!r}")
        if isinstance(value, Mapping):
            write_entries(group.create_group(encoded(key)), value, f"{path}/{key}")
        else:
            kind, stored = _stored(value, f"{path}/{key}")
            group.create_dataset(encoded(key), data=stored).attrs["kind"] = kind


class EntryReader:
    """Reads the entries of one file.

    Args:
        size_bytes: of the file; all arrays together are not larger.
    """

    def __init__(self, size_bytes: int) -> None:
        self._left = size_bytes
        self._seen: set[Any] = set()

    def read(self, group: h5py.Group, depth: int = 0) -> dict[str, Any]:
        """The tree in a group.

        Raises:
            ForeignEntryError: something in it is not as `write_entries` leaves it.
        """
        if depth > _DEEPEST:
            raise ForeignEntryError(f"{group.name:.60}... has groups within groups without end")
        if not depth:
            self._see(group, "its root")
        return {decoded(name): self._entry(group, name, depth) for name in group}

    def _entry(self, group: h5py.Group, name: str, depth: int) -> dict[str, Any] | Leaf:
        where = f"entry {group.name.rstrip('/')}/{name}"
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            file = f" of '{link.filename}'" if isinstance(link, h5py.ExternalLink) else ""
            raise ForeignEntryError(f"{where} is a link to '{link.path}'{file}")
        member = group[name]
        self._see(member, where)
        if isinstance(member, h5py.Group):
            return self.read(member, depth + 1)
        if not isinstance(member, h5py.Dataset):
            raise ForeignEntryError(f"{where} is neither a group nor an array")
        self._check(member, where)
        return _loaded(member, _kind(member, where))

    def _see(self, member: Any, where: str) -> None:
        """Refuses a second way to the same, which may be one without end."""
        address = h5py.h5o.get_info(member.id).addr
        if address in self._seen:
            raise ForeignEntryError(f"{where} is there twice")
        self._seen.add(address)

    def _check(self, dataset: h5py.Dataset, where: str) -> None:
        """Refuses what is not in the file, byte for byte; reads nothing."""
        made = dataset.id.get_create_plist()
        if made.get_external_count():
            raise ForeignEntryError(f"{where} lies in another file, '{dataset.external[0][0]}'")
        if made.get_layout() == h5py.h5d.VIRTUAL:
            raise ForeignEntryError(f"{where} is put together from other files")
        if made.get_layout() not in _LAYOUTS or made.get_nfilters():
            raise ForeignEntryError(f"{where} is compressed or in chunks")
        text = h5py.check_string_dtype(dataset.dtype)
        if text is None and (dataset.dtype.kind not in _NUMBERS or dataset.dtype.metadata):
            raise ForeignEntryError(f"{where} has the type {dataset.dtype}")
        if text is not None and (text.length is not None or dataset.shape != ()):
            raise ForeignEntryError(f"{where} is no single text")
        self._left -= dataset.nbytes
        if dataset.shape is None or self._left < 0 or dataset.nbytes > dataset.id.get_storage_size():
            raise ForeignEntryError(f"{where} claims {dataset.nbytes:,} bytes, more than the file has")


def _kind(dataset: h5py.Dataset, where: str) -> str:
    """The attribute `kind`, which is looked at as entries are."""
    attribute = dataset.attrs.get_id("kind")
    text = h5py.check_string_dtype(attribute.dtype)
    if text is None or text.length is not None or attribute.shape != ():
        raise ForeignEntryError(f"{where} has an attribute `kind` that is no text")
    return str(dataset.attrs["kind"])


def _stored(value: object, where: str) -> tuple[str, np.ndarray[Any, Any]]:
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None:
            return "none", np.zeros((), np.uint8)
        case bool():
            return "bool", np.asarray(value)
        case int():
            # The state of a random generator has integers of 128 bits.
            return "int", np.asarray(value) if -(2**63) <= value < 2**63 else _text(str(value))
        case float():
            return "float", np.asarray(value)
        case str():
            # HDF5's strings end at the first NUL.
            return "str", np.frombuffer(value.encode(), np.uint8) if "\0" in value else _text(value)
        case np.ndarray() if value.dtype.kind in _NUMBERS:
            return "array", value
    raise TypeError(f"checkpoint entry {where} is {type(value).__name__} ({value!r:.60}), which has no place in HDF5")


def _text(value: str) -> np.ndarray[Any, Any]:
    return np.array(value, h5py.string_dtype())


def _loaded(dataset: h5py.Dataset, kind: str) -> Leaf:
    stored = dataset.asstr()[()] if h5py.check_string_dtype(dataset.dtype) else np.asarray(dataset)
    match kind:
        case "none":
            return None
        case "array" if isinstance(stored, np.ndarray):
            return stored
        case "str":
            return stored.tobytes().decode() if isinstance(stored, np.ndarray) else str(stored)
        case "bool":
            return bool(stored)
        case "int":
            return int(stored)
        case "float":
            return float(stored)
    raise ForeignEntryError(f"entry {dataset.name} has the unknown kind '{kind}'")


def encoded(key: str) -> str:
    """A key as a name that HDF5 allows: not empty, not `.`, without `/` and NUL."""
    # The percent sign first, since the others bring in new ones; so it comes last on the way back.
    name = key.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    return {"": "%", ".": "%2E"}.get(name, name)


def decoded(name: str) -> str:
    if name == "%":
        return ""
    return name.replace("%2E", ".").replace("%00", "\0").replace("%2F", "/").replace("%25", "%")
