"""Real runs, looked at from outside over a steady window: `srlhpc run` in a process of its own."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from srlhpc.bench.processes import cpu_seconds, pss_bytes, tree, variable_of
from srlhpc.bench.rows import Spread
from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_names import checkpoint_files
from srlhpc.errors import ClusterError, UserError
from srlhpc.plan.roles import role_of
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.processes import RANK_VARIABLE
from srlhpc.specs.child_processes import die_with_parent

log = logging.getLogger(__name__)

STEPS_WITHOUT_END = 1_000_000_000
_START_SECONDS = 300.0
_END_SECONDS = 120.0
_LOOK_SECONDS = 0.02

Job = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """How runs are measured."""

    warm_seconds: float
    """Seconds before the window, once all ranks are there and a batch was trained."""
    seconds: float
    """Length of the window."""
    repeats: int
    cores: int | None = None
    """Cores that all processes of a run share; None: all that this process may use."""


@dataclass(frozen=True)
class _Look:
    """One moment of a run."""

    time: float
    status: Mapping[str, Any]
    cpu: Mapping[int, float]
    """CPU seconds of every process of the run."""


@dataclass(frozen=True)
class Window:
    """What a run did between two moments."""

    first: _Look
    last: _Look
    first_batch_seconds: float
    """Seconds from the start of the command to the first trained batch."""
    all_ranks_seconds: float
    """Seconds from the start of the command until a batch was trained and every rank had reported."""
    pids: Mapping[int, int]
    """Process of each rank."""
    pss_bytes: int
    checkpoint_bytes: int
    """Size of the newest checkpoint; 0 if there is none."""

    @property
    def seconds(self) -> float:
        return self.last.time - self.first.time

    @property
    def steps(self) -> int:
        """Trained."""
        return int(self.last.status["steps"] - self.first.status["steps"])

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.seconds

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of all processes within the window."""
        return sum(seconds - self.first.cpu.get(pid, 0.0) for pid, seconds in self.last.cpu.items())

    @property
    def cpu_per_million(self) -> float:
        return 1e6 * self.cpu_seconds / max(1, self.steps)

    def counted(self, role: str, counter: str) -> float:
        """What all ranks of a role counted within the window."""
        first, last = (look.status["roles"].get(role, {}).get(counter, 0.0) for look in (self.first, self.last))
        return float(last - first)

    def counted_seconds(self, role: str) -> float:
        """Seconds between the reports that `counted` compares, up to a report's interval older than the looks."""
        return self.counted(role, "seconds") / max(1, len(_ranks_of(self.last, role)))

    def cores_of_rank(self, number: int) -> float:
        """Cores that the rank used."""
        pid = self.pids[number]
        return (self.last.cpu.get(pid, 0.0) - self.first.cpu.get(pid, 0.0)) / self.seconds


def _ranks_of(look: _Look, role: str) -> list[int]:
    return [rank["rank"] for rank in look.status["ranks"] if role_of(rank["label"]) == role]


@dataclass
class _Run:
    process: subprocess.Popen[bytes]
    paths: RunPaths
    said: Path
    begun: float = field(default_factory=time.time)

    def wait_for(self, wanted: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """The next status that is as wanted.

        Raises:
            UserError, ClusterError: the run has ended or takes too long.
        """
        deadline = time.time() + _START_SECONDS
        while True:
            status = read_json(self.paths.status)
            if status and wanted(status):
                return status
            if self.process.poll() is not None:
                raise self._ended()
            if time.time() > deadline:
                raise ClusterError(f"the run got nowhere in {_START_SECONDS:.0f} s; it said: {self._text()}")
            time.sleep(_LOOK_SECONDS)

    def look(self, after: float) -> _Look:
        status = self.wait_for(lambda status: status["time"] > after)
        return _Look(time.time(), status, {pid: cpu_seconds(pid) for pid in tree(self.process.pid)})

    def stop(self) -> None:
        """Ends the run as Ctrl-C does; then by force."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()

    def _ended(self) -> Exception:
        text = self._text()
        if self.process.returncode == 2:
            return UserError(text.removeprefix("srlhpc: "))
        return ClusterError(f"the measured run ended too early (exit code {self.process.returncode}): {text}")

    def _text(self) -> str:
        return self.said.read_text(errors="replace").strip()[-2000:]


def measure_run(job: Job | Path, overrides: Sequence[str], measure: Measure) -> Window:
    """Runs a job until a window has passed, then stops it.

    Args:
        job: a job file, or what one would say.
        overrides: as `--set` takes them.
        measure: how long, and on which cores.

    Raises:
        UserError: the job is refused.
        ClusterError: the run fails, or trains nothing within five minutes.
    """
    with tempfile.TemporaryDirectory(prefix="srlhpc-bench-") as name:
        folder = Path(name)
        if not isinstance(job, Path):
            (folder / "job.yaml").write_text(yaml.safe_dump(dict(job)))
            job = folder / "job.yaml"
        run = _start(job, overrides, folder, measure.cores)
        try:
            return _window(run, measure)
        finally:
            run.stop()


def measure_runs(title: str, job: Job | Path, overrides: Sequence[str], measure: Measure) -> list[Window]:
    """The same run several times; the title is for those who watch."""
    windows = []
    for number in range(measure.repeats):
        log.info("%s, run %d of %d", title, number + 1, measure.repeats)
        windows.append(measure_run(job, overrides, measure))
    return windows


def rates(windows: Sequence[Window]) -> tuple[Spread, Spread]:
    """Trained steps per second of wall time, and CPU-seconds per million of them."""
    return (
        Spread.of([window.steps_per_second for window in windows]),
        Spread.of([window.cpu_per_million for window in windows]),
    )


def _start(job: Path, overrides: Sequence[str], folder: Path, cores: int | None) -> _Run:
    sets = [argument for override in overrides for argument in ("--set", override)]
    command = [sys.executable, "-m", "srlhpc.cli.main", "run", str(job), "--root", str(folder), "--name", "run", *sets]
    allowed = sorted(os.sched_getaffinity(0))[:cores]

    def prepare() -> None:
        die_with_parent()
        os.sched_setaffinity(0, allowed)

    said = folder / "output"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=prepare,
        )
    return _Run(process, RunPaths(folder / "run"), said)


def _window(run: _Run, measure: Measure) -> Window:
    begun = time.time()
    run.wait_for(lambda status: status["steps"] > 0)
    trained = time.time()
    run.wait_for(lambda status: status["ranks_alive"] == status["ranks_planned"])
    complete = time.time()
    # Every look comes right after a status was written, so that steps and CPU time belong together.
    first = run.look(complete + measure.warm_seconds)
    last = run.look(first.time + measure.seconds)
    files = checkpoint_files(run.paths.checkpoints)
    size = files[-1].stat().st_size if files else 0
    return Window(first, last, trained - begun, complete - begun, _rank_pids(last.cpu), pss_bytes(last.cpu), size)


def _rank_pids(pids: Iterable[int]) -> dict[int, int]:
    found = {pid: variable_of(pid, RANK_VARIABLE) for pid in pids}
    return {int(rank): pid for pid, rank in found.items() if rank is not None}
