"""Large arrays in large pages."""

from __future__ import annotations

import math
import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LEAST_BYTES = 1 << 22
"""Smaller arrays lie in few pages anyway."""


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros that the machine gives when they are first written, as `numpy.zeros`, but in pages of 2 MB if it has some.

    Whatever is read at random costs a search for its page each time, and there are 512 times fewer of them then. Most
    Linux systems give such pages only to those who ask, and `numpy.zeros` does not.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _LEAST_BYTES:
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError, AttributeError):
        # Not every kernel has them, and not every system knows the word.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)
