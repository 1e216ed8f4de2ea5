"""What the C library does with memory that is freed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

# Of mallopt(3), with the variables by which users set the same.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "LD_PRELOAD", "GLIBC_TUNABLES")
_LARGEST_MMAP_THRESHOLD = 32 << 20
_SMALL_MMAP_THRESHOLD = 1 << 20
_KEPT_BYTES = 1 << 30


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Keeps freed memory for the next allocation instead of giving it back to the kernel, on glibc.

    By default glibc maps every array of 128 KiB or more anew and unmaps it when it is freed. A rank frees and
    allocates the same arrays in every step, so it would pay for page faults and zeroing in each: up to half of the
    time of a gradient step.

    Returns:
        Whether it could be asked for; false where the user has set something alike, or with another C library.
    """
    return _set({_MMAP_THRESHOLD: _LARGEST_MMAP_THRESHOLD, _TRIM_THRESHOLD: _KEPT_BYTES}, environment)


def return_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Gives arrays of a mebibyte or more back to the kernel as soon as they are freed, on glibc.

    By default glibc learns from the first large array that is freed, and keeps up to twice its size from then on: in
    the coordinator, which holds a checkpoint for a second and then nothing for minutes, two checkpoints for good.

    Returns:
        Whether it could be asked for, as `keep_freed_memory`.
    """
    return _set({_MMAP_THRESHOLD: _SMALL_MMAP_THRESHOLD}, environment)


def _set(numbers: Mapping[int, int], environment: Mapping[str, str]) -> bool:
    if any(name in environment for name in _VARIABLES):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(bool(mallopt(name, number)) for name, number in numbers.items())
