"""N updates, kill -9 in mid-episode, resume, N updates: the same bits as 2N undisturbed updates.

Runs that are stopped and resumed in one process, of many more kinds of jobs, are in tests/ranks/test_serial_stops.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.data.tree import leaves
from srlhpc.ranks.serial import run_serial
from tests.finding import KEYS
from tests.launch.making_runs import checkpoint, make_attempt, make_run, outcome, settings, tree_of

N = 3
ROOT = Path(__file__).parents[2]
NOT_COMPARED = {"meta/seconds"}
EVERY_N: dict[str, Any] = {"stop": {"updates": 2 * N}, "checkpoint": {"every_updates": N}}
SCHEDULED = {"kind": "ppo", "learning_rate": {"start": 1e-2, "end": 0.0, "steps": 600}, "epochs": 4, "minibatches": 2}
LSTM = {"kind": "mlp", "hidden": [16], "recurrent": {"kind": "lstm", "size": 8}}

JOBS = {
    "recall with memory, normalisation, schedule and four epochs": settings(
        {"factory": "recall", "choices": 3, "delay": 2},
        network=LSTM,
        normalize={"observations": True, "returns": True},
        algorithm=SCHEDULED,
        **EVERY_N,
    ),
    "cartpole, which cannot be saved": settings(
        {"factory": "gymnasium", "id": "CartPole-v1"},
        normalize={"observations": True, "returns": False},
        algorithm=SCHEDULED,
        batch={"fragments": 8, "fragment_steps": 16},
        **EVERY_N,
    ),
    "an entity network in chunks, of batches used twice": settings(
        {"factory": "tests.finding"},
        network={"kind": "entities", "recurrent": {"kind": "lstm", "size": 8}, "width": 8, "heads": 2, "features": 16}
        | KEYS,
        normalize={"observations": True, "returns": "pop_art", "decay": 0.9},
        algorithm=SCHEDULED,
        batch={"fragments": 8, "fragment_steps": 8, "chunk_steps": 4, "uses": 2, "queue": 3},
        **EVERY_N,
    ),
    "replay that is drawn by priorities": settings(
        {"factory": "catch", "rows": 5, "columns": 3},
        network={"kind": "tests.rules.action_values"},
        algorithm={"kind": "tests.rules.replayed_q"},
        batch={"fragments": 8, "fragment_steps": 1},
        replay={
            "capacity": 64,
            "samples_per_insert": 0.25,
            "start_steps": 20,
            "block_steps": 4,
            "draw": {"kind": "prioritized"},
        },
        **EVERY_N,
    ),
    "draws from the generators of the process, cannot be saved": settings(
        {"factory": "tests.drawing_environment", "saves": False}, algorithm=SCHEDULED, **EVERY_N
    ),
    "draws from the generators of the process, is evaluated, too": settings(
        {"factory": "tests.drawing_environment", "saves": True},
        algorithm=SCHEDULED,
        evaluators={"ranks": 1, "episodes": 3, "every_updates": 2},
        **EVERY_N,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_run_that_was_killed_in_mid_episode_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    job = JOBS[name]
    undisturbed = make_run(tmp_path, job, "undisturbed")
    run_serial(undisturbed, make_attempt(undisturbed, job)[0])

    killed = make_run(tmp_path, job, "killed")
    die(killed.folder, make_attempt(killed, job)[0].number, N, 13)
    assert not checkpoint(killed, 2 * N).exists()
    resumed, _ = make_attempt(killed, job, checkpoint(killed, N))
    run_serial(killed, resumed)

    assert outcome(resumed)["state"] == "finished"
    assert differences(tree_of(undisturbed, 2 * N), tree_of(killed, 2 * N)) == []


def die(folder: Path, attempt: int, updates: int, steps: int) -> None:
    command = [sys.executable, "-m", "tests.launch.doomed_serial", str(folder), str(attempt), str(updates), str(steps)]
    process = subprocess.run(command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()


def whole_and_resumed(
    root: Path, job: Callable[[int], dict[str, Any]], half: int, full: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last checkpoints of a serial run of `full` updates, and of one that ended after `half` and went on."""
    whole, halves = (make_run(root, job(full), name) for name in ("whole", "halves"))
    run_serial(whole, make_attempt(whole, job(full))[0])
    run_serial(halves, make_attempt(halves, job(half))[0])
    run_serial(halves, make_attempt(halves, job(full), checkpoint(halves, half))[0])
    return tree_of(whole, full), tree_of(halves, full)


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Paths of all leaves that differ in a bit; wall time apart."""
    a, b = ({"/".join(path): value for path, value in leaves(tree)} for tree in (one, other))
    return [path for path in sorted({*a, *b} - NOT_COMPARED) if not _same(a.get(path), b.get(path))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and (one == other or one != one and other != other)
