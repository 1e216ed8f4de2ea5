"""srlhpc beside its rivals on the same work: CPU-seconds of all processes, steps per second, memory.

    make bench-rivals
    python benchmarks/compare_rivals.py pong cartpole --repeat 3 --window 20

Each repeat measures everybody once, one after the other, so that a busy machine is busy for all of them. A window
starts `--warm` seconds after the first trained steps; it begins and ends when a counter of trained steps is seen.
OpenMP's waiting threads are told to sleep for everybody: spinning multiplies CPU time where cores are shared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from srlhpc.bench.end_to_end import Case, default_cases
from srlhpc.bench.processes import cpu_seconds, pss_bytes, tree
from srlhpc.bench.runs import STEPS_WITHOUT_END, Measure, measure_runs

HERE = Path(__file__).parent
WITHOUT_END = ("stop.return_mean=null", f"stop.steps={STEPS_WITHOUT_END}", "stop.hours=null")
RIVALS = ("sample-factory", "cleanrl")
START_SECONDS = 90.0
COUNTER = re.compile(r"(?:^steps=|Total num frames: )(\d+)")


def rival(name: str, task: str, folder: Path, scratch: Path) -> list[str]:
    """Command line of a rival."""
    if name == "cleanrl":
        return [str(folder / "cleanrl/bin/python"), "single_file_ppo.py", task]
    return [str(folder / "sample-factory/bin/python"), "sample_factory_run.py", task, str(scratch)]


def counts(process: subprocess.Popen[str]) -> Iterator[int]:
    """Trained steps as they are printed, when they have grown."""
    assert process.stdout is not None
    seen = 0
    for line in process.stdout:
        found = COUNTER.search(line)
        if found and int(found[1]) > seen:
            seen = int(found[1])
            yield seen


def measure_rival(command: list[str], warm: float, window: float) -> dict[str, Any]:
    """Runs a rival until the window has passed, then kills it and everything below it."""
    begun = time.time()
    process = subprocess.Popen(
        command, cwd=HERE / "rivals", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    # A rival whose worker died may wait for it for ever.
    limit = threading.Timer(START_SECONDS + warm + 3 * window, _kill, [process.pid])
    limit.start()
    first, pss = 0.0, 0
    looks: list[tuple[float, float, int]] = []
    for steps in counts(process):
        first = first or time.time()
        if time.time() < first + warm:
            continue
        pids = tree(process.pid)
        looks.append((time.time(), sum(map(cpu_seconds, pids)), steps))
        pss = max(pss, pss_bytes(pids))
        if looks[-1][0] >= looks[0][0] + window:
            break
    limit.cancel()
    _kill(process.pid)
    process.wait()
    if len(looks) < 2:
        raise SystemExit(f"{command} printed no counters for a whole window; its status: {process.returncode}")
    begin, end = looks[0], looks[-1]
    steps, cpu, wall = end[2] - begin[2], end[1] - begin[1], end[0] - begin[0]
    return {
        "steps_per_second": steps / wall,
        "cores": cpu / wall,
        "cpu_seconds_per_million": 1e6 * cpu / steps,
        "pss_mb": pss / 1e6,
        "first_seconds": first - begun,
    }


def _kill(root: int) -> None:
    """Ends a process and everything below it."""
    for pid in tree(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def measure_ours(case: Case, warm: float, window: float) -> dict[str, Any]:
    """Runs srlhpc until the window has passed, then stops it."""
    (seen,) = measure_runs(case.name, case.job, (*case.overrides, *WITHOUT_END), Measure(warm, window, 1))
    return {
        "steps_per_second": seen.steps_per_second,
        "cores": seen.cpu_seconds / seen.seconds,
        "cpu_seconds_per_million": seen.cpu_per_million,
        "pss_mb": seen.pss_bytes / 1e6,
        "first_seconds": seen.first_batch_seconds,
    }


def measure_one(name: str, task: str, arguments: argparse.Namespace) -> dict[str, Any]:
    if name not in RIVALS:
        case = next(case for case in default_cases() if case.name == name)
        return measure_ours(case, arguments.warm, arguments.window)
    scratch = Path(tempfile.mkdtemp(prefix="rival-"))
    try:
        return measure_rival(rival(name, task, arguments.rivals.resolve(), scratch), arguments.warm, arguments.window)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def table(task: str, results: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Medians and ranges."""
    yield f"| {task} | runs | CPU-s per 1M steps | steps/s | cores | PSS MB |"
    yield "|---|---|---|---|---|---|"
    for name, runs in results.items():
        cells = []
        for key in ("cpu_seconds_per_million", "steps_per_second", "cores", "pss_mb"):
            values = [run[key] for run in runs]
            digits = 2 if key == "cores" else 0
            low, middle, high = (f"{f(values):,.{digits}f}" for f in (min, statistics.median, max))
            cells.append(f"{middle} ({low}–{high})")
        yield f"| {name} | {len(runs)} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tasks", nargs="*", default=["pong", "cartpole"], choices=[[], "pong", "cartpole"])
    parser.add_argument("--rivals", type=Path, default=Path(".venv-rivals"), help="made by make bench-rivals")
    parser.add_argument("--warm", type=float, default=6.0)
    parser.add_argument("--window", type=float, default=20.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    for task in arguments.tasks or ["pong", "cartpole"]:
        names = [*(case.name for case in default_cases() if case.name.lower().startswith(task)), *RIVALS]
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for _ in range(arguments.repeat):
            for name in names:
                results[name].append(measure_one(name, task, arguments))
                print(task, name, json.dumps(results[name][-1]), file=sys.stderr)
        print(json.dumps({task: results}) if arguments.json else "\n".join(table(task, results)), flush=True)


if __name__ == "__main__":
    main()
