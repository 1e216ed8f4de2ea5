from __future__ import annotations

import subprocess
import sys

import pytest

from srlhpc.ranks.malloc import keep_freed_memory, return_freed_memory

FAULTS_OF_A_LOOP = """
import resource, sys
import numpy as np
from srlhpc.ranks.malloc import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory({})
else:
    assert not keep_freed_memory({"GLIBC_TUNABLES": "glibc.malloc.check=0"})
[np.ones(25_000) for _ in range(8)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    [np.ones(25_000) for _ in range(8)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

HELD_AFTER_A_LOOP = """
import sys
import numpy as np
from srlhpc.ranks.malloc import return_freed_memory

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

if sys.argv[1] == "given back":
    assert return_freed_memory({})
before = held()
for _ in range(3):
    np.ones(1_000_000)
[np.ones(900_000) for _ in range(2)]
print(held() - before)
"""


def faults(how: str) -> int:
    return said_by(FAULTS_OF_A_LOOP, how)


def said_by(program: str, how: str) -> int:
    done = subprocess.run([sys.executable, "-c", program, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_kept_memory_causes_no_page_faults() -> None:
    assert faults("kept") < 100
    assert faults("given back") > 1000


def test_large_arrays_are_given_back_as_soon_as_they_are_freed() -> None:
    assert said_by(HELD_AFTER_A_LOOP, "given back") < 4_000
    assert said_by(HELD_AFTER_A_LOOP, "as it comes") > 10_000


@pytest.mark.parametrize("variable", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD"])
def test_setting_of_the_user_stays(variable: str) -> None:
    assert not keep_freed_memory({variable: "1"})
    assert not return_freed_memory({variable: "1"})
