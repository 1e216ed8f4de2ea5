"""Rows of one type behind each other: in memory while they are few, then in a file without a name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.void]
"""`[n]` of a structured type: one array for each field."""


class RowSpool:
    """Takes rows one by one and gives them back in pieces.

    Args:
        row: a structured type.
        folder: where the file is made when there are too many for memory; it goes with the process, however that ends.
        most_bytes: kept in memory.
    """

    def __init__(self, row: np.dtype[Any], folder: Path, most_bytes: int) -> None:
        self._row = row
        self._file = tempfile.SpooledTemporaryFile(most_bytes, dir=str(folder))  # noqa: SIM115 (closed by `close`)

    def append(self, row: NDArray[Any]) -> None:
        """Adds one row, `[]`.

        Raises:
            OSError: the disk is full, say.
        """
        self._file.write(row.tobytes())

    def pieces(self, start: int, stop: int, most_bytes: int) -> Iterator[Rows]:
        """Rows from `start` to before `stop`, in pieces of about so many bytes.

        Raises:
            OSError: they cannot be read.
        """
        size, at_once = self._row.itemsize, max(1, most_bytes // self._row.itemsize)
        self._file.seek(start * size)
        while start < stop:
            count = min(at_once, stop - start)
            yield np.frombuffer(self._file.read(count * size), self._row)
            start += count

    def clear(self) -> None:
        """Forgets all rows."""
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Gives memory and disk back."""
        self._file.close()
