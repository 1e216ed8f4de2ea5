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
from typing import Any, BinaryIO

import h5py

from srlhpc.data.atomic import write_atomically
from srlhpc.data.checkpoint_entries import EntryReader, ForeignEntryError, Tree, write_entries
from srlhpc.data.forgiving import FileSystemLostError, patiently
from srlhpc.data.score import Rule
from srlhpc.errors import UserError

MAGIC = "srlhpc checkpoint"
FORMAT_VERSION = 1
HEADER_BYTES = 512
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_HDF5_ERRORS = (OSError, KeyError, ValueError, TypeError, RuntimeError, OverflowError, MemoryError, AttributeError)
_GO_ON = (
    "Use another checkpoint; `srlhpc checkpoint verify FILE` says which are whole, "
    "and `srlhpc resume RUN` takes the newest whole one by itself."
)


def write_checkpoint(path: Path, tree: Tree, score: float | None = None, rule: Rule = "return_mean") -> None:
    """Writes a tree to a file: aside, forced to disk, renamed.

    The file is first made in memory, since HDF5 reports a full disk late and as something else.

    Args:
        path: the file; its folder must exist.
        tree: nested mappings with string keys; leaves are arrays of numbers or booleans, int, float, str, bool, None.
            A NumPy scalar becomes the Python one.
        score: what `keep_best` compares; higher is better; None or NaN: never a best one.
        rule: where the score comes from.

    Raises:
        TypeError: a key is no string or a leaf has another type.
        OSError: the disk is full, say; the file that was there before is untouched.
    """
    with h5py.File(
        str(path), "w", driver="core", backing_store=False, libver=("v110", "v110"), userblock_size=HEADER_BYTES
    ) as file:
        write_entries(file, tree)
        file.flush()
        image: bytes = file.id.get_file_image()
    described = {
        "format_version": FORMAT_VERSION,
        # JSON has no NaN.
        "score": None if score is None or math.isnan(score) else float(score),
        "rule": rule,
        # The image begins behind the user block.
        "bytes": HEADER_BYTES + len(image),
    }
    digest = _digest(described)
    digest.update(image)
    text = f"{MAGIC}\n{json.dumps(described | {'sha256': digest.hexdigest()})}\n"
    write_atomically(path, text.encode().ljust(HEADER_BYTES), image, sync=True)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The tree in a checkpoint file, its digest checked. Keys come back sorted.

    Opening it runs no code of the file, reads no other file, and takes no more memory than the file is long.

    Raises:
        FileSystemLostError: the file system fails for too long.
        UserError: there is no such file, it is no HDF5, truncated, damaged, no checkpoint of srlhpc, or of a newer one;
            something in it is what srlhpc never writes.
    """
    try:
        return patiently(path, lambda: _read(path))
    except (UserError, FileSystemLostError):
        raise
    except _HDF5_ERRORS as error:
        raise UserError(f"{path}: {_reason(error)}. {_GO_ON}") from None


def _read(path: Path) -> dict[str, Any]:
    with open(path, "rb", opener=_without_waiting) as raw:
        _verify(raw, path)
    # Shared file systems often refuse locks; a finished file is never written again, so none is needed.
    with h5py.File(path, "r", locking=False) as file:
        return EntryReader(path.stat().st_size).read(file)


def read_score(path: Path) -> float | None:
    """The score that was written with a checkpoint; reads the header only.

    Raises:
        UserError: as `read_checkpoint`, damage behind the header excepted.
    """
    score = _read_header(path)["score"]
    return None if score is None else float(score)


def read_rule(path: Path) -> str | None:
    """The rule that the score comes from; None in a file of an older srlhpc, whose means were over any number.

    Raises:
        UserError: as `read_score`.
    """
    return _read_header(path).get("rule")


def _read_header(path: Path) -> dict[str, Any]:
    def read() -> dict[str, Any]:
        with open(path, "rb", opener=_without_waiting) as raw:
            return _header(raw, path)

    try:
        return patiently(path, read)
    except OSError as error:
        raise UserError(f"{path}: {_reason(error)}. {_GO_ON}") from None


def _without_waiting(path: str, flags: int) -> int:
    """Opens a pipe, too, at once: it is found to be empty."""
    return os.open(path, flags | os.O_NONBLOCK)


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
        case ForeignEntryError():
            return f"is no checkpoint of srlhpc, which writes no such thing: {error}"
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
        # Only to find out whether it is a number.
        float(header["score"] or 0.0)
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
    # The digest is of the header without itself, and of all that follows.
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
