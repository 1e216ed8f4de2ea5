"""Trees of named arrays and numbers as bytes, without pickle: how parts of a checkpoint travel.

The bytes are an eight-byte length, a JSON head (names, dtypes, shapes, plain values) and the arrays one after another.
Spaces at the end of the head let the arrays begin at a multiple of sixteen bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LENGTH_BYTES = 8
_ALIGNED_BYTES = 16

Tree = Mapping[str, Any]
"""Nested mappings of numpy arrays, numbers, text, booleans and None."""


def leaves(tree: Tree, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every leaf with its path, in order."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def encode_tree(tree: Tree) -> list[NDArray[np.uint8]]:
    """Flat bytes, one piece after another, that `decode_tree` turns back; arrays are not copied, so they are live."""
    head: list[dict[str, Any]] = []
    arrays: list[NDArray[Any]] = []
    for path, value in leaves(tree):
        if isinstance(value, np.ndarray):
            head.append({"path": path, "dtype": value.dtype.str, "shape": value.shape})
            arrays.append(np.ascontiguousarray(value))
        else:
            head.append({"path": path, "value": value.item() if isinstance(value, np.generic) else value})
    text = json.dumps(head).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNED_BYTES)
    parts = [np.array([len(text)], np.int64).view(np.uint8), np.frombuffer(text, np.uint8)]
    return parts + [array.reshape(-1).view(np.uint8) for array in arrays]


def decode_tree(data: NDArray[np.uint8]) -> dict[str, Any]:
    """The tree whose `encode_tree` these bytes are, put together.

    Arrays are views of the bytes, or copies where they do not begin at a multiple of their numbers' size.
    """
    start = _LENGTH_BYTES + int(data[:_LENGTH_BYTES].view(np.int64)[0])
    tree: dict[str, Any] = {}
    for entry in json.loads(data[_LENGTH_BYTES:start].tobytes()):
        if "dtype" in entry:
            dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            stored = data[start : start + size]
            value: Any = (stored if stored.ctypes.data % dtype.itemsize == 0 else stored.copy()).view(dtype)
            value = value.reshape(shape)
            start += size
        else:
            value = entry["value"]
        *groups, name = entry["path"]
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[name] = value
    return tree
