"""Opening the memory that another rank has made."""

from __future__ import annotations

import os

from srlhpc.comm.node.links import _TOKEN_BYTES, _made, _opened

SIZE = 1000


def test_memory_is_the_same_behind_its_token() -> None:
    memory, descriptor = _made(SIZE)
    assert memory is not None
    opened = _opened(f"/proc/self/fd/{descriptor}", SIZE, memory[:_TOKEN_BYTES])
    os.close(descriptor)
    assert opened is not None
    memory[_TOKEN_BYTES : _TOKEN_BYTES + 4] = b"said"
    assert opened[_TOKEN_BYTES : _TOKEN_BYTES + 4] == b"said"


def test_file_of_another_process_that_has_the_same_number_is_not_taken() -> None:
    memory, descriptor = _made(SIZE)
    assert memory is not None
    opened = _opened(f"/proc/self/fd/{descriptor}", SIZE, bytes(_TOKEN_BYTES))
    os.close(descriptor)
    assert opened is None


def test_memory_that_cannot_be_opened_is_none() -> None:
    assert _opened("/proc/self/fd/1000000", SIZE, bytes(_TOKEN_BYTES)) is None
