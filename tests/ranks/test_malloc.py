from __future__ import annotations

import subprocess
import sys

import pytest

from srlhpc.ranks.malloc import keep_freed_memory

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


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS_OF_A_LOOP, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_kept_memory_causes_no_page_faults() -> None:
    assert faults("kept") < 100
    assert faults("given back") > 1000


@pytest.mark.parametrize("variable", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD"])
def test_setting_of_the_user_stays(variable: str) -> None:
    assert not keep_freed_memory({variable: "1"})
