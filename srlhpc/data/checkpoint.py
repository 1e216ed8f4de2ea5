"""Checkpoint files: a tree of arrays and plain values in HDF5, with a digest; nothing in it is pickled.

A file starts with a text header of 512 bytes, which HDF5 skips as its user block (`head -c 512 FILE` shows it):
format version, score, size, and the SHA-256 of all that. The digest is checked before HDF5 sees a byte, because its
library may hang on a damaged file. Groups are mappings, datasets are leaves; the attribute `kind` of a leaf is `array`,
`int`, `float`, `bool`, `str` or `none`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import h5py
import numpy as np

from srlhpc.data.atomic import write_atomically
from srlhpc.objects import UserError

Leaf: TypeAlias = "np.ndarray[Any, Any] | int | float | str | bool | None"
Tree: TypeAlias = Mapping[str, "Tree | Leaf"]

MAGIC = "srlhpc checkpoint"
FORMAT_VERSION = 1
HEADER_BYTES = 512
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_HDF5_ERRORS = (OSError, KeyError, ValueError, TypeError, RuntimeError, OverflowError, MemoryError, AttributeError)
_GO_ON = (
    "Use another checkpoint; `srlhpc checkpoint verify FILE` tells which are whole, "
    "and `srlhpc resume RUN` takes the newest whole one by itself."
)


def write_checkpoint(path: Path, tree: Tree, score: float | None = None) -> None:
    """Writes a tree to a file: aside, forced to disk, renamed.

    The file is first made in memory, since HDF5 reports a full disk late and as something else.

    Args:
        path: the file; its folder must exist.
        tree: nested mappings with string keys; leaves are arrays of numbers or booleans, int, float, str, bool, None.
            A NumPy scalar becomes the Python one.
        score: what `keep_best` compares; higher is better; None or NaN: never a best one.

    Raises:
        TypeError: a key is no string or a leaf has another type.
        OSError: the disk is full, say; the file that was there before is untouched.
    """
    with h5py.File(
        str(path), "w", driver="core", backing_store=False, libver=("v110", "v110"), userblock_size=HEADER_BYTES
    ) as file:
        _write_group(file, tree, "")
        file.flush()
        image: bytes = file.id.get_file_image()
    described = {
        "format_version": FORMAT_VERSION,
        "score": None if score is None or math.isnan(score) else float(score),
        "bytes": HEADER_BYTES + len(image),
    }
    digest = _digest(described)
    digest.update(image)
    text = f"{MAGIC}\n{json.dumps(described | {'sha256': digest.hexdigest()})}\n"
    write_atomically(path, text.encode().ljust(HEADER_BYTES), image, sync=True)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The tree in a checkpoint file, its digest checked. Keys come back sorted; opening it runs no code of the file.

    Raises:
        UserError: there is no such file, it is no HDF5, truncated, damaged, no checkpoint of srlhpc, or of a newer one.
    """
    try:
        with open(path, "rb") as raw:
            _verify(raw, path)
        # Shared file systems often refuse locks; a finished file is never written again, so none is needed.
        with h5py.File(path, "r", locking=False) as file:
            return _read_group(file)
    except UserError:
        raise
    except _HDF5_ERRORS as error:
        raise UserError(f"{path}: {_reason(error)}. {_GO_ON}") from None


def read_score(path: Path) -> float | None:
    """The score that was written with a checkpoint; reads the header only.

    Raises:
        UserError: as `read_checkpoint`, damage behind the header excepted.
    """
    try:
        with open(path, "rb") as raw:
            score = _header(raw, path)["score"]
            return None if score is None else float(score)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: {_reason(error)}. {_GO_ON}") from None


def _reason(error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such checkpoint file"
        case IsADirectoryError():
            return "is a folder, not a checkpoint file"
        case PermissionError():
            return "may not be read by this user"
        case OSError(strerror=str(reason)):
            return f"cannot be read: {reason}"
    return f"is damaged: {error}"


def _header(raw: BinaryIO, path: Path) -> dict[str, Any]:
    """What the header says, if the file is one that this version reads and has its full length."""
    block = raw.read(HEADER_BYTES)
    size = os.fstat(raw.fileno()).st_size
    if not size:
        raise UserError(f"{path}: is empty. {_GO_ON}")
    if not block.startswith(MAGIC.encode()):
        kind = "is HDF5, but" if block.startswith(_HDF5_SIGNATURE) else "is no HDF5 file and"
        raise UserError(f"{path}: {kind} no checkpoint of srlhpc. {_GO_ON}")
    if len(block) < HEADER_BYTES:
        raise UserError(f"{path}: is truncated after {size} bytes. {_GO_ON}")
    try:
        header = json.loads(block[len(MAGIC) :])
        version, expected = int(header["format_version"]), int(header["bytes"])
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: is damaged: its header cannot be read. {_GO_ON}") from None
    if version != FORMAT_VERSION:
        origin = "a newer srlhpc; update srlhpc to read it," if version > FORMAT_VERSION else "an unknown srlhpc;"
        raise UserError(
            f"{path}: has the checkpoint format version {version}, and this srlhpc reads version {FORMAT_VERSION}. "
            f"It was written by {origin} or use another checkpoint."
        )
    if size != expected:
        what = "truncated" if size < expected else "too long"
        raise UserError(f"{path}: is {what}: it has {size} bytes of {expected}. {_GO_ON}")
    return dict(header)


def _verify(raw: BinaryIO, path: Path) -> None:
    header = _header(raw, path)
    written = str(header.pop("sha256", ""))
    digest = _digest(header)
    while chunk := raw.read(1 << 20):
        digest.update(chunk)
    if digest.hexdigest() != written:
        raise UserError(
            f"{path}: is damaged: its contents have the digest {digest.hexdigest()[:12]}…, "
            f"and {written[:12]}… was written with them. {_GO_ON}"
        )


def _digest(header: Mapping[str, Any]) -> hashlib._Hash:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode())


def _write_group(group: h5py.Group, tree: Tree, path: str) -> None:
    for key, value in tree.items():
        if not isinstance(key, str):
            raise TypeError(f"a checkpoint's keys are strings; {path}/ has {key!r}")
        if isinstance(value, Mapping):
            _write_group(group.create_group(_encoded(key)), value, f"{path}/{key}")
        else:
            kind, stored = _stored(value, f"{path}/{key}")
            group.create_dataset(_encoded(key), data=stored).attrs["kind"] = kind


def _read_group(group: h5py.Group) -> dict[str, Any]:
    return {
        _decoded(name): _read_group(member) if isinstance(member, h5py.Group) else _loaded(member)
        for name, member in group.items()
    }


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
        case np.ndarray() if value.dtype.kind in "biufc":
            return "array", value
    raise TypeError(f"checkpoint entry {where} is {type(value).__name__} ({value!r:.60}), which has no place in HDF5")


def _text(value: str) -> np.ndarray[Any, Any]:
    return np.array(value, h5py.string_dtype())


def _loaded(dataset: h5py.Dataset) -> Leaf:
    stored = dataset.asstr()[()] if h5py.check_string_dtype(dataset.dtype) else np.asarray(dataset)
    match str(dataset.attrs["kind"]):
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
    raise ValueError(f"entry {dataset.name} has the unknown kind '{dataset.attrs['kind']}'")


def _encoded(key: str) -> str:
    """A key as a name that HDF5 allows: not empty, not `.`, without `/` and NUL."""
    name = key.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    return {"": "%", ".": "%2E"}.get(name, name)


def _decoded(name: str) -> str:
    if name == "%":
        return ""
    return name.replace("%2E", ".").replace("%00", "\0").replace("%2F", "/").replace("%25", "%")
