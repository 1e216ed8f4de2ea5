from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from srlhpc.bench.processes import cpu_seconds, pss_bytes, tree, variable_of

CHILD = """
import time
while time.process_time() < 0.15:
    pass
print(1, flush=True)
input()
"""
PROGRAM = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


@pytest.fixture
def parent() -> Iterator[int]:
    """A process with one below it that has computed for 0.1 s; both wait."""
    environment = os.environ | {"SRLHPC_TEST_MARK": "here"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.readline()
    yield process.pid
    process.communicate(b"\n")


def test_tree_is_the_process_and_what_it_started(parent: int) -> None:
    assert tree(parent)[0] == parent
    assert len(tree(parent)) == 2


def test_processes_have_used_cpu_time_and_memory(parent: int) -> None:
    assert 0.1 <= sum(map(cpu_seconds, tree(parent))) < 10
    assert pss_bytes(tree(parent)) > 2_000_000


def test_environment_of_a_process_is_read(parent: int) -> None:
    assert [variable_of(parent, name) for name in ("SRLHPC_TEST_MARK", "SRLHPC_TEST_NONE")] == ["here", None]


def test_what_has_gone_counts_as_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert (cpu_seconds(process.pid), pss_bytes([process.pid])) == (0.0, 0)
    assert variable_of(process.pid, "PATH") is None
