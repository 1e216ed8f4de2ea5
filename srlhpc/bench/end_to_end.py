"""Whole jobs: trained steps per second, CPU time, memory, and the time to the first trained batch."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import srlhpc
from srlhpc.bench.rows import Row, Spread
from srlhpc.bench.runs import STEPS_WITHOUT_END, Measure, Window, measure_runs, rates
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from srlhpc.specs.load import load_experiment

_LIMITS = ("updates", "return_mean", "hours")
_WITHOUT_END = (f"stop.steps={STEPS_WITHOUT_END}", *(f"stop.{limit}=null" for limit in _LIMITS))
_PONG = (
    "policies.default.algorithm.learning_rate=2.5e-4",
    "policies.default.algorithm.clip_ratio=0.1",
    "policies.default.algorithm.epochs=1",
    "policies.default.algorithm.minibatches=4",
    "policies.default.batch.fragment_steps=64",
)
"""One epoch over 1,024 steps in minibatches of 256, as other systems are measured with."""
_CARTPOLE = (
    "policies.default.algorithm.epochs=4",
    "policies.default.batch.fragments=128",
    "policies.default.batch.fragment_steps=16",
    "actors.ranks=1",
    "actors.ring=1",
    "actors.environments=128",
    "actors.inference={kind: inline}",
)
"""Four epochs over 2,048 steps, as other systems are measured with. Two cores have room for one actor; so its groups
are larger than those of the job."""


class Case(NamedTuple):
    """A job with what is changed in it."""

    name: str
    job: Path
    overrides: tuple[str, ...]


def default_cases() -> list[Case]:
    """Pong in both precisions with one epoch and CartPole with four, from the `jobs` of a source checkout.

    Raises:
        UserError: there is none.
    """
    jobs = Path(srlhpc.__file__).parents[1] / "jobs"
    if not (jobs / "pong.yaml").exists():
        raise UserError(f"there is no {jobs}/pong.yaml (srlhpc is not run from its sources); name a job file")
    return [
        Case("Pong, float32", jobs / "pong.yaml", (*_PONG, "trainers.precision=float32")),
        Case("Pong, bfloat16", jobs / "pong.yaml", (*_PONG, "trainers.precision=bfloat16")),
        Case("CartPole, 4 epochs", jobs / "cartpole.yaml", _CARTPOLE),
    ]


def measure_end_to_end(cases: Sequence[Case], *, measure: Measure) -> list[Row]:
    """A row for every job.

    Raises:
        UserError: a job is wrong, or needs packages that are not installed.
    """
    for case in cases:
        _check(case)
    rows = []
    for case in cases:
        windows = measure_runs(case.name, case.job, (*case.overrides, *_WITHOUT_END), measure)
        rows.append(_row(case, windows, import_seconds(measure.repeats)))
    return rows


def import_seconds(repeats: int) -> Spread:
    """Seconds of `python -c 'import torch'`, the files being in memory."""
    seconds = []
    for _ in range(1 + repeats):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        seconds.append(time.perf_counter() - begun)
    return Spread.of(seconds[1:])


def _row(case: Case, windows: Sequence[Window], imports: Spread) -> Row:
    rate, cpu = rates(windows)
    start = Spread.of([window.first_batch_seconds for window in windows])
    details = {
        "cores": sum(w.cpu_seconds / w.seconds for w in windows) / len(windows),
        "MB of PSS": max(window.pss_bytes for window in windows) / 1e6,
        "s to the first trained batch": start.median,
        "s to import torch": imports.median,
        "% of what actors do, inside the simulator": _share_of_stepping(windows),
    }
    return Row(case.name, "whole run", rate, "trained steps/s", cpu, "CPU-s per 1M", {}, details)


def _share_of_stepping(windows: Sequence[Window]) -> float:
    """Share of the simulator in the time that actors do anything; wall time, which a busy machine shares out.

    What an actor spends on looking for replies counts as waiting, so its share of CPU time is somewhat smaller.
    """
    shares = [
        100 * _ratio(w.counted("actor", "environment_seconds"), w.counted("actor", "computing_seconds"))
        for w in windows
    ]
    return sum(shares) / len(shares)


def _ratio(part: float, rest: float) -> float:
    return part / max(part + rest, 1e-9)


def _check(case: Case) -> None:
    spec = load_experiment(case.job, (*case.overrides, *_WITHOUT_END))
    if missing := missing_packages(spec.environment.requires):
        package, extra = missing[0]
        raise UserError(f"{case.job} needs {package}, which is not installed: pip install 'srlhpc[{extra}]'")
