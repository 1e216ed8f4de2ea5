"""Which tests this machine can serve.

SRLHPC_TESTS_REQUIRE, for example "mpi slurm", names markers whose tests must run: one that is skipped has failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.failing_disk import FailingDisk
from tests.on_slurm.labs import lab_of

REQUIRED = os.environ.get("SRLHPC_TESTS_REQUIRE", "").split()

# A busy machine is slow now and then, and a test that fails must fail again.
hypothesis.settings.register_profile("srlhpc", deadline=None, derandomize=True)
hypothesis.settings.load_profile("srlhpc")


@pytest.fixture
def failing_disk(monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    """Files of this process on a disk that fails when it is told to."""
    return FailingDisk(monkeypatch)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """How `pytest -n` hands out tests to its workers."""
    from tests.scheduling import Scheduling

    return Scheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, with the reason, what needs hardware or programs that are not here. Asks only about what is to run."""
    for marker, reason in (("gpu", _no_gpu), ("slurm", _no_slurm)):
        marked = [item for item in items if item.get_closest_marker(marker) is not None]
        missing = reason(marked) if marked else None
        if missing is not None:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=missing))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Makes a failure of a skip that is not allowed."""
    report = yield
    markers = [name for name in REQUIRED if item.get_closest_marker(name) is not None]
    if report.skipped and not hasattr(report, "wasxfail") and markers:
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.longrepr = f"{reason}; SRLHPC_TESTS_REQUIRE says that tests of {', '.join(markers)} must run"
    return report


def _no_gpu(_: list[pytest.Item]) -> str | None:
    import torch

    return None if torch.cuda.is_available() else "no CUDA device"


def _no_slurm(items: list[pytest.Item]) -> str | None:
    """Asks the labs of these tests; why one of them is of no use."""
    if shutil.which("scontrol") is None:
        return "no Slurm on this machine; on Debian, as root: make slurm-lab"
    labs = {lab for item in items if (lab := lab_of(item.nodeid))}
    return next(filter(None, map(_no_lab, sorted(labs))), None)


def _no_lab(path: str) -> str | None:
    if not Path(path).exists():
        return "no Slurm lab; start it: make slurm-lab"
    ping = ["timeout", "10", "scontrol", "ping"]
    if subprocess.run(ping, env=os.environ | {"SLURM_CONF": path}, capture_output=True).returncode:
        return f"the Slurm lab of {path} does not answer; start it: make slurm-lab"
    return None
