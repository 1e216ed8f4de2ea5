"""The environment with Open MPI that `make venv-test` makes beside the one with MPICH."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def openmpi_python() -> str:
    """Its interpreter; skips where there is none."""
    path = Path(sys.prefix) / "openmpi" / "bin" / "python"
    if not path.exists():
        pytest.skip("no environment with Open MPI; make it: make venv-test")
    return str(path)
