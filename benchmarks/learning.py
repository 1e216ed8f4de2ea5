"""What jobs learn over seeds: returns of greedy episodes with the last parameters, steps, minutes of a core.

    python benchmarks/learning.py cartpole_dqn pendulum_sac --seeds 1 2 3 --cores 0 1 --out learning.jsonl

Runs are serial, each alone on one core, as many at a time as cores are named; a seed gives the same numbers on the same
machine. Every run trains to the end of its job's steps and then plays 100 episodes with `srlhpc eval`. Runs that are in
the output already are not made again; without job names, the table of what is there is printed. Arguments after `--` go
to every `srlhpc run`, for example `-- --set stop.steps=20000`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from threading import Lock
from typing import Any

JOBS = Path(__file__).parent.parent / "jobs"
EPISODES = 100
_SRLHPC = Path(sys.executable).with_name("srlhpc")


def learn(job: str, seed: int, core: int, folder: Path, options: Sequence[str]) -> dict[str, Any]:
    """Trains one seed on one core, then plays."""
    name = f"{job}-{seed}"
    run = ["run", str(JOBS / f"{job}.yaml"), "--serial", "--name", name, "--set", f"seed={seed}"]
    run += ["--set", "stop.return_mean=null", "--set", "checkpoint.every_updates=1000000000", *options]
    cpu = _on_core(core, folder, run)[1]
    played = json.loads(_on_core(core, folder, ["eval", name, "--episodes", str(EPISODES), "--json"])[0])
    steps = json.loads((folder / name / "metrics.jsonl").read_text().splitlines()[-1])["steps"]
    return {"job": job, "seed": seed, "return": played["return_mean"], "steps": steps, "cpu": cpu}


def _on_core(core: int, folder: Path, arguments: Sequence[str]) -> tuple[str, float]:
    """Output and CPU-seconds of one command of srlhpc."""
    command = ["taskset", "--cpu-list", str(core), str(_SRLHPC), *arguments, "--root", str(folder)]
    log = (folder / "log.txt").open("a")
    with (
        log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        ) as process,
    ):
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}; see {log.name}")
    return output, usage.ru_utime + usage.ru_stime


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The mean over seeds of each job, the range in brackets."""
    yield f"| job | seeds | return of {EPISODES} greedy episodes | steps | core minutes | CPU-s per million steps |"
    yield "|---|---|---|---|---|---|"
    for job in dict.fromkeys(row["job"] for row in rows):
        runs = [row for row in rows if row["job"] == job]
        yield " | ".join(
            (
                f"| `{job}`",
                ", ".join(str(seed) for seed in sorted(run["seed"] for run in runs)),
                _cell([run["return"] for run in runs], ",.4g"),
                _cell([run["steps"] for run in runs], ",.0f"),
                _cell([run["cpu"] / 60 for run in runs], ".3g"),
                _cell([1e6 * run["cpu"] / run["steps"] for run in runs], ",.0f") + " |",
            )
        )


def _cell(values: Sequence[float], form: str) -> str:
    low, high = min(values), max(values)
    return f"{statistics.fmean(values):{form}}" + (f" [{low:{form}}, {high:{form}}]" if low < high else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("jobs", nargs="*", help="names of files in jobs/, without .yaml")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--cores", nargs="*", type=int, default=[0])
    parser.add_argument("--root", type=Path, help="where runs are kept; else they are thrown away")
    parser.add_argument("--out", type=Path, required=True, help="a JSON line for every run")
    arguments, options = parser.parse_known_args()
    rows = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    done = {(row["job"], row["seed"]) for row in rows}
    cores: Queue[int] = Queue()
    for core in arguments.cores:
        cores.put(core)
    lock = Lock()

    def make(job: str, seed: int, folder: Path) -> None:
        core = cores.get()
        try:
            row = learn(job, seed, core, folder, [option for option in options if option != "--"])
        finally:
            cores.put(core)
        with lock, arguments.out.open("a") as out:
            out.write(json.dumps(row) + "\n")
            rows.append(row)

    wanted = [(job, seed) for job in arguments.jobs for seed in arguments.seeds if (job, seed) not in done]
    with tempfile.TemporaryDirectory() as thrown_away, ThreadPoolExecutor(len(arguments.cores)) as pool:
        folder = arguments.root or Path(thrown_away)
        folder.mkdir(parents=True, exist_ok=True)
        for made in [pool.submit(make, job, seed, folder) for job, seed in wanted]:
            made.result()
    sys.stdout.write("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
