"""Large arrays in large pages: data/pages.py."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from srlhpc.data.pages import zeros

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.parametrize("shape", [(3,), (0, 4), (1 << 20, 3)])
def test_zeros_of_any_size_can_be_written(shape: tuple[int, ...]) -> None:
    array = zeros(shape, "float32")
    assert (array.shape, array.dtype, array.any()) == (shape, np.float32, False)
    array[...] = 1
    assert array.all()


@pytest.mark.skipif(not SETTING.exists(), reason="this kernel has no large pages")
def test_a_large_array_asks_for_large_pages() -> None:
    array = zeros((1 << 23,), "uint8")
    (flags,) = (flags for first, end, flags in mappings() if first <= array.ctypes.data < end)
    assert "hg" in flags


def mappings() -> list[tuple[int, int, list[str]]]:
    """First and end address of each mapping of this process, and its flags."""
    text = Path("/proc/self/smaps").read_text()
    found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) .*?^VmFlags: (.*?)$", text, re.MULTILINE | re.DOTALL)
    return [(int(first, 16), int(end, 16), flags.split()) for first, end, flags in found]
