"""Which Slurm lab a test uses.

The first lab is the one that SLURM_CONF names, else the one that `make slurm-lab` has started. Where
SRLHPC_TESTS_SECOND_LAB names the slurm.conf of another one, half of the tests use that.
"""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = "tests/on_slurm/"
_OF_THE_SECOND = f"{_FOLDER}test_faults.py"
"""These take about as long as all the others."""
_OF_MAKE = Path(__file__).with_name("lab") / ".state" / "etc" / "slurm.conf"


def lab_of(test: str) -> str | None:
    """The slurm.conf of the lab that a test uses; None if it uses none.

    Args:
        test: its id, `tests/on_slurm/test_why.py::test_...`.
    """
    if not test.startswith(_FOLDER):
        return None
    second = os.environ.get("SRLHPC_TESTS_SECOND_LAB")
    if second and test.startswith(_OF_THE_SECOND):
        return second
    return os.environ.get("SLURM_CONF") or str(_OF_MAKE)
