"""CPU-seconds of all processes per million trained steps of a job, over a steady window.

    python benchmarks/training_cpu.py jobs/pong.yaml --set trainers.precision=float32 --warm 8 --window 30

The window starts `--warm` seconds after the first trained step and ends `--window` seconds later; CPU time is user and
system time of the foreman and everything below it, read from /proc when `status.json` is replaced. Memory is the
largest sum of PSS that was seen.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """The process and everything below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(parents.get(pid, []))
    return found


def cpu_seconds(pids: list[int]) -> float:
    """User and system seconds of the processes."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def pss_bytes(pids: list[int]) -> int:
    """Proportional set size of the processes."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def reports(process: subprocess.Popen[bytes], status_file: Path) -> Iterator[int]:
    """Trained steps, each time `status.json` is replaced, until the run ends."""
    seen = 0.0
    while process.poll() is None:
        time.sleep(0.05)
        try:
            status = json.loads(status_file.read_text())
        except (OSError, ValueError):
            continue
        if status["time"] != seen and status["steps"]:
            seen = status["time"]
            yield int(status["steps"])


def measure(job: str, overrides: list[str], warm: float, window: float, python: str) -> dict[str, Any]:
    """Runs the job until the window has passed, then stops it."""
    root = Path(tempfile.mkdtemp(prefix="srlhpc-bench-"))
    sets = [argument for override in overrides for argument in ("--set", override)]
    command = [python, "-m", "srlhpc.cli.main", "run", job, "--root", str(root), "--name", "bench", *sets]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = 0.0
    looks: list[tuple[float, float, int]] = []
    pss = 0
    for steps in reports(process, root / "bench" / "status.json"):
        first = first or time.time()
        if time.time() < first + warm:
            continue
        pids = tree(process.pid)
        looks.append((time.time(), cpu_seconds(pids), steps))
        pss = max(pss, pss_bytes(pids))
        if looks[-1][0] >= looks[0][0] + window:
            break
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait()
    if len(looks) < 2 or looks[0][2] == looks[-1][2]:
        raise SystemExit("the run ended before the window: give the job more steps")
    begin, end = looks[0], looks[-1]
    steps, cpu, wall = end[2] - begin[2], end[1] - begin[1], end[0] - begin[0]
    return {
        "job": job,
        "overrides": overrides,
        "steps": steps,
        "steps_per_second": steps / wall,
        "cores": cpu / wall,
        "cpu_seconds_per_million": 1e6 * cpu / steps,
        "pss_mb": pss / 1e6,
        "window_seconds": wall,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("job")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--warm", type=float, default=8.0)
    parser.add_argument("--window", type=float, default=30.0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    for _ in range(arguments.repeat):
        result = measure(arguments.job, arguments.overrides, arguments.warm, arguments.window, arguments.python)
        print(json.dumps(result))


if __name__ == "__main__":
    main()
