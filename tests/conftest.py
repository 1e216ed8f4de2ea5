"""Which tests this machine can serve."""

from __future__ import annotations

import shutil

import hypothesis
import pytest

# A busy machine is slow now and then, and a test that fails must fail again.
hypothesis.settings.register_profile("srlhpc", deadline=None, derandomize=True)
hypothesis.settings.load_profile("srlhpc")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, with the reason, what needs hardware or programs that are not here."""
    missing: dict[str, str | None] = {}
    for item in items:
        for marker, reason in (("gpu", _no_gpu), ("slurm", _no_slurm)):
            if item.get_closest_marker(marker) is None:
                continue
            if marker not in missing:
                missing[marker] = reason()
            if missing[marker]:
                item.add_marker(pytest.mark.skip(reason=missing[marker] or ""))


def _no_gpu() -> str | None:
    import torch

    return None if torch.cuda.is_available() else "no CUDA device"


def _no_slurm() -> str | None:
    return None if shutil.which("slurmctld") or shutil.which("sbatch") else "no Slurm on this machine"
