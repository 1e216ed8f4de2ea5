"""srlhpc beside its rivals on the same work: CPU-seconds of all processes, steps per second, memory.

    make bench-rivals
    python benchmarks/compare_rivals.py pong cartpole pong_dqn --repeat 3 --window 20

Each repeat measures everybody once, one after the other, so that a busy machine is busy for all of them. A window
starts `--warm` seconds after the first trained steps; it begins and ends when a counter of trained steps is seen.
`pong_dqn` learns from every step eight times, in batches of 32, on a network without a dueling head. OpenMP's waiting
threads are told to sleep for everybody: spinning multiplies CPU time where cores are shared.
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
from functools import partial
from pathlib import Path
from typing import Any

from srlhpc.bench.end_to_end import Case, default_cases
from srlhpc.bench.processes import cpu_seconds, pss_bytes, tree
from srlhpc.bench.runs import STEPS_WITHOUT_END, Measure, measure_runs

HERE = Path(__file__).parent
JOBS = HERE.parent / "jobs"
TASKS = ("pong", "cartpole", "pong_dqn")
WITHOUT_END = ("stop.return_mean=null", f"stop.steps={STEPS_WITHOUT_END}", "stop.hours=null")
PONG_DQN = (
    *("policies.default.algorithm.head_units=null", "policies.default.algorithm.dueling=false"),
    *("policies.default.algorithm.double=false", "policies.default.algorithm.n_steps=1"),
    *("policies.default.algorithm.target_every_updates=250", "policies.default.batch.fragments=32"),
    "policies.default.algorithm.exploration={kind: epsilon, value: 0.05}",
    *("policies.default.replay.capacity=50000", "policies.default.replay.samples_per_insert=8"),
    *("policies.default.replay.start_steps=2000", "policies.default.replay.ranks=0"),
    *("actors.ranks=1", "actors.ring=2", "actors.environments=4", "actors.inference={kind: inline}"),
    "evaluators.ranks=0",
)
"""Small enough for two cores, and with the rivals' settings; but eight games at once, where theirs is one."""
UNIFORM = "policies.default.replay.draw={kind: uniform}"
START_SECONDS = 90.0
COUNTER = re.compile(r"(?:^steps=|Total num frames: )(\d+)")


def rivals(task: str, folder: Path) -> dict[str, list[str]]:
    """Command lines of a task's rivals."""
    if task == "pong_dqn":
        python = str(folder / "stable-baselines3/bin/python")
        return {name: [python, f"{name}_dqn.py"] for name in ("stable_baselines3", "single_file")}
    return {
        "sample-factory": [str(folder / "sample-factory/bin/python"), "sample_factory_run.py", task],
        "cleanrl": [str(folder / "cleanrl/bin/python"), "single_file_ppo.py", task],
    }


def ours(task: str) -> list[Case]:
    """What srlhpc runs of a task."""
    if task == "pong_dqn":
        job = JOBS / "pong_dqn.yaml"
        return [Case("Pong, dqn by priority", job, PONG_DQN), Case("Pong, dqn uniform", job, (*PONG_DQN, UNIFORM))]
    return [case for case in default_cases() if case.name.lower().startswith(task)]


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


def measure_alone(command: list[str], warm: float, window: float) -> dict[str, Any]:
    """A rival; its last argument is a folder that is removed afterwards."""
    scratch = Path(tempfile.mkdtemp(prefix="rival-"))
    try:
        return measure_rival([*command, str(scratch)], warm, window)
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
    parser.add_argument("tasks", nargs="*", default=[], choices=[[], *TASKS])
    parser.add_argument("--rivals", type=Path, default=Path(".venv-rivals"), help="made by make bench-rivals")
    parser.add_argument("--warm", type=float, default=6.0)
    parser.add_argument("--window", type=float, default=20.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    for task in arguments.tasks or TASKS:
        measures = {
            **{case.name: partial(measure_ours, case) for case in ours(task)},
            **{name: partial(measure_alone, line) for name, line in rivals(task, arguments.rivals.resolve()).items()},
        }
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in measures}
        for _ in range(arguments.repeat):
            for name, measure in measures.items():
                results[name].append(measure(arguments.warm, arguments.window))
                print(task, name, json.dumps(results[name][-1]), file=sys.stderr)
        print(json.dumps({task: results}) if arguments.json else "\n".join(table(task, results)), flush=True)


if __name__ == "__main__":
    main()
