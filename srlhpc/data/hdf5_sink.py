"""What HDF5 writes to: its library crashes in `close` after the disk refused something, so it never hears of that."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO


class Hdf5Sink(io.RawIOBase):
    """A file for `h5py.File` whose first error is kept; from then on nothing is written.

    Args:
        file: open for reading and writing; it stays the caller's.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: OSError | None = None

    def check(self) -> None:
        """Raises OSError: the disk refused something that HDF5 believes to be written."""
        self._try(self._file.flush)
        if self._error is not None:
            raise self._error

    def _try(self, call: Callable[..., Any], *arguments: Any) -> Any:
        if self._error is not None:
            return 0
        try:
            return call(*arguments)
        except OSError as error:
            self._error = error
            return 0

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._try(self._file.seek, offset, whence))

    def tell(self) -> int:
        return int(self._try(self._file.tell))

    def readinto(self, buffer: Any) -> int:
        return int(self._try(self._file.readinto, buffer))  # type: ignore[attr-defined]

    def write(self, data: Any) -> int:
        self._try(self._file.write, data)
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        return int(self._try(self._file.truncate, size))

    def flush(self) -> None:
        self._try(self._file.flush)
