"""The environment of a job, examined in a process of its own, which it may break."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from srlhpc.doctor.findings import Finding, fault
from srlhpc.specs.environment_process import started
from srlhpc.specs.load import load_job
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.probe import TIMEOUT_SECONDS, check_packages


def examine_job(job: str, overrides: Sequence[str], patience_seconds: float = TIMEOUT_SECONDS) -> Iterator[Finding]:
    """What can be told of a job's environment.

    Args:
        job: its file.
        overrides: `path=value`.
        patience_seconds: between two findings.

    Raises:
        UserError: the file cannot be read, or a package is missing.
    """
    spec = load_job(job, overrides).spec
    check_packages(spec.environment)
    normalizes = all(policy.normalize.observations for policy in spec.policies.values())
    return _looked_at(spec.environment, max(2, spec.actors.environments), normalizes, patience_seconds)


def _looked_at(
    settings: EnvironmentSettings, count: int, normalizes: bool, patience_seconds: float
) -> Iterator[Finding]:
    arguments = [str(count), str(int(normalizes))]
    one_thread = {"OMP_NUM_THREADS": "1"}
    with started("srlhpc.doctor.environment_look", settings, *arguments, variables=one_thread) as process:
        told, heard_at = 0, time.monotonic()
        while True:
            # Before its answers are read, which are all there once it has ended.
            is_running = process.is_running
            news = process.answers()[told:]
            for content in news:
                if not content:
                    return
                yield Finding(**content)
            if news:
                told, heard_at = told + len(news), time.monotonic()
            elif not is_running or time.monotonic() - heard_at > patience_seconds:
                ending = process.ending(f"nothing came of it within {patience_seconds:g} s", "it ended its process")
                yield fault("process", ending, "correct it there")
                return
            time.sleep(0.01)
