"""Files that are whole or not there: written under a temporary name, then renamed; read with tolerance."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

WRITING = ".writing"
"""Ending of a file that is being written; one that stays behind is the rest of an interrupted write."""


def write_atomically(path: Path, *content: bytes, sync: bool = False) -> None:
    """Writes a whole file, so that a reader sees the old content or the new and never a part.

    Args:
        path: where; its folder must exist.
        content: all of it, in parts.
        sync: force file and folder to the disk before returning, so that it outlives a loss of power.

    Raises:
        OSError: the disk is full, the folder is gone, and so on; it names `path`. The old file is then untouched, but
            where only the new name could not be forced to the disk.
    """
    with written_aside(path, sync=sync) as file, naming(path):
        file.writelines(content)


@contextlib.contextmanager
def written_aside(path: Path, *, sync: bool = False) -> Iterator[BinaryIO]:
    """A file to write and read that becomes `path` when the body ends; after an error there all is as before.

    Args:
        path: where; its folder must exist.
        sync: as in `write_atomically`.

    Raises:
        OSError: the file cannot be made or take its place, as in `write_atomically`, or `path` is a device or a pipe.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        # A file in the place of /dev/null, say, would break the whole machine.
        raise OSError(errno.EINVAL, "is a device or a pipe, which a file must not replace", os.fspath(path))
    aside = path.with_name(f".{path.name}.{os.getpid()}{WRITING}")
    with naming(path):
        file = open(aside, "w+b")  # noqa: SIM115 (its close may fail, after what matters)
    try:
        yield file
        with naming(path):
            file.flush()
            if sync:
                os.fsync(file.fileno())
            file.close()
            # Beside the file, so on the same file system: only there is a rename atomic.
            os.replace(aside, path)
            if sync:
                # The name is in the folder, which has to reach the disk by itself.
                sync_folder(path.parent)
    except BaseException:
        for undo in (file.close, aside.unlink):
            with contextlib.suppress(OSError):
                undo()
        raise


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Lets an OSError of the body name a file: what a write raises names none, and nobody knows temporary ones."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def sync_folder(folder: Path) -> None:
    """Forces the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Mapping[str, Any] | list[Any], *, sync: bool = False) -> None:
    """`write_atomically` of a JSON document."""
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode(), sync=sync)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if there is no such file or it holds no whole object."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
