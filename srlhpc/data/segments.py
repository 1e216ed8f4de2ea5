"""Files of blocks that replay keeps beside checkpoints: each only grows, and a checkpoint names what it needs of it.

A file is a row of frames: a header of 64 bytes (a word, first block, blocks, bytes, digest), then a tree
(data/tree.py) of the blocks' fields, groups and sequence numbers. The digest is the SHA-256 of the digest before and of
the frame, so the last one vouches for all bytes before it. What lies behind, a later frame or the rest of a write that
was cut off, does not matter.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.atomic import sync_folder
from srlhpc.data.forgiving import patiently
from srlhpc.data.full_disk import leave_room
from srlhpc.data.layout import Array
from srlhpc.data.tree import decode_tree, encode_tree
from srlhpc.errors import UserError

ENDING = ".blocks"
_WORD = b"srlhpc 1"
_HEADER = struct.Struct("<8sqqq32s")


class Run(NamedTuple):
    """Blocks with consecutive numbers, n of them. A store numbers its blocks as they come."""

    first: int
    """Number of the first one."""
    group: NDArray[np.int64]
    """`[n]`."""
    sequence: NDArray[np.int64]
    """`[n]`: place of each among the blocks of its group."""
    fields: Mapping[str, Array]
    """`[n, ...]` each."""


@dataclass(frozen=True)
class Segment:
    """What a checkpoint names of a file: everything up to `size`."""

    name: str
    first: int
    """Number of its first block."""
    count: int = 0
    """Blocks, with consecutive numbers."""
    size: int = 0
    """Bytes."""
    digest: str = ""
    """Digest of its last frame."""

    @property
    def end(self) -> int:
        """Number of the block that comes next."""
        return self.first + self.count


def segments_to_tree(segments: Iterable[Segment]) -> dict[str, Any]:
    """Segments as a part of a checkpoint holds them; their order survives."""
    return {f"{place:08d}": asdict(segment) for place, segment in enumerate(segments)}


def segments_from_tree(tree: Mapping[str, Any]) -> list[Segment]:
    """What `segments_to_tree` gave."""
    return [Segment(**tree[place]) for place in sorted(tree)]


def begin_segment(folder: Path, label: str, first: int) -> Segment:
    """Makes an empty file whose number is above those of all files of that label.

    Args:
        folder: made, if the run's folder is there.
        label: of the role that writes.
        first: number of the block that is written first.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(exist_ok=True)
    number = max((number_of(path, label) or 0 for path in folder.iterdir()), default=0)
    while True:
        number += 1
        path = folder / f"{label}-{number:08d}{ENDING}"
        # The listing of a shared file system may be old.
        with contextlib.suppress(FileExistsError):
            open(path, "xb").close()
            sync_folder(folder)
            return Segment(path.name, first)


def number_of(path: Path, label: str) -> int | None:
    """The number in the name of a role's file; None if it is another's."""
    number = path.name.removeprefix(f"{label}-").removesuffix(ENDING)
    return int(number) if path.name == f"{label}-{number}{ENDING}" and number.isdecimal() else None


def append(folder: Path, segment: Segment, run: Run) -> Segment:
    """Adds a frame behind what the segment names, and forces it to the disk.

    Returns:
        The longer segment.

    Raises:
        OSError: the disk is full, say; what the segment names is untouched.
    """
    assert run.first == segment.end, "blocks of a file have consecutive numbers"
    pieces = encode_tree({"group": run.group, "sequence": run.sequence, "fields": run.fields})
    count, size = len(run.group), sum(piece.size for piece in pieces)
    leave_room(folder, size)
    digest = _digest(segment.digest, run.first, count, pieces)
    with open(folder / segment.name, "r+b", buffering=0) as file:
        try:
            # Behind it may be the rest of a write that failed.
            file.truncate(segment.size)
            file.seek(segment.size)
            for piece in (np.frombuffer(_HEADER.pack(_WORD, run.first, count, size, digest), np.uint8), *pieces):
                _write(file, piece)
            os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(segment.size)
            raise
    return replace(
        segment,
        count=segment.count + count,
        size=segment.size + _HEADER.size + size,
        digest=digest.hex(),
    )


def _write(file: Any, piece: NDArray[np.uint8]) -> None:
    """All of it: the system may take only a part at once."""
    while piece.size:
        piece = piece[file.write(piece.data) :]


def _digest(before: str, first: int, count: int, pieces: Iterable[NDArray[np.uint8]]) -> bytes:
    made = hashlib.sha256(bytes.fromhex(before) + struct.pack("<qq", first, count))
    for piece in pieces:
        made.update(piece.data)
    return made.digest()


def read_runs(folder: Path, segment: Segment) -> Iterator[Run]:
    """The blocks that a segment names, frame by frame, each digest checked.

    Raises:
        FileSystemLostError: the file system fails for too long.
        UserError: the file is missing, cut off or damaged.
    """
    for first, payload in _frames(folder / segment.name, segment):
        tree = decode_tree(payload)
        yield Run(first, tree["group"], tree["sequence"], tree["fields"])


def verify(folder: Path, segment: Segment) -> None:
    """Reads all that a segment names.

    Raises:
        FileSystemLostError, UserError: as `read_runs`.
    """
    for _ in _frames(folder / segment.name, segment):
        pass


def require_length(folder: Path, segment: Segment) -> None:
    """Refuses a file that is missing or cut off; reads nothing of it.

    Raises:
        FileSystemLostError, UserError: as `read_runs`.
    """
    path = folder / segment.name
    try:
        size = patiently(path, lambda: path.stat().st_size)
    except OSError as error:
        raise _unreadable(path, error) from None
    if size < segment.size:
        raise _cut_off(path, segment)


def _frames(path: Path, segment: Segment) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """The number of each frame's first block, and its bytes."""
    offset, digest, number = 0, "", segment.first
    while offset < segment.size:
        try:
            first, count, written, payload = patiently(path, lambda at=offset: _frame(path, at, segment))  # type: ignore[misc]
        except OSError as error:
            raise _unreadable(path, error) from None
        found = _digest(digest, first, count, [payload])
        if found != written or first != number:
            raise UserError(f"{path}: is damaged: its blocks from {first:,} on are not those that were written")
        yield first, payload
        offset, digest, number = offset + _HEADER.size + payload.size, found.hex(), first + count
    if digest != segment.digest or number != segment.end:
        raise UserError(f"{path}: is damaged: it does not hold the blocks that the checkpoint names")


def _frame(path: Path, offset: int, segment: Segment) -> tuple[int, int, bytes, NDArray[np.uint8]]:
    """First block, blocks, digest and bytes of the frame that begins there."""
    with open(path, "rb") as file:
        file.seek(offset)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise _cut_off(path, segment)
        word, first, count, size, digest = _HEADER.unpack(header)
        # Before so much memory is asked for.
        if word != _WORD or not 0 <= size <= segment.size - offset - _HEADER.size:
            raise UserError(f"{path}: is damaged, or no file of blocks of this srlhpc")
        payload = np.empty(size, np.uint8)
        if _read(file, payload) < size:
            raise _cut_off(path, segment)
    return first, count, digest, payload


def _read(file: BinaryIO, into: NDArray[np.uint8]) -> int:
    """Bytes that were there."""
    return file.readinto(into.data)  # type: ignore[attr-defined,no-any-return]


def _cut_off(path: Path, segment: Segment) -> UserError:
    return UserError(f"{path}: is cut off: it has less than the {segment.size:,} bytes that the checkpoint names")


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: {'is missing' if isinstance(error, FileNotFoundError) else error.strerror or error}")
