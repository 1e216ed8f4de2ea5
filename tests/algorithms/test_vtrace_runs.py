"""Whole serial runs with V-trace: they go on bit for bit, and learn with memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srlhpc.evaluation import evaluate
from srlhpc.ranks.serial import run_serial
from tests.launch.making_runs import make_attempt, make_run, settings
from tests.launch.test_exact_resume import LSTM, differences, whole_and_resumed

RECALL = {"factory": "recall", "choices": 3, "delay": 2}


@pytest.mark.parametrize("rule", [{}, {"clip_ratio": 0.4, "old_policy_updates": 3}], ids=["impala", "appo"])
def test_run_goes_on_to_the_same_bits(rule: dict[str, Any], tmp_path: Path) -> None:
    def job(updates: int) -> dict[str, Any]:
        return settings(
            RECALL,
            stop={"updates": updates},
            network=LSTM,
            normalize={"observations": True, "returns": "pop_art", "decay": 0.9},
            algorithm={"kind": "vtrace", "learning_rate": 1e-2, "minibatches": 2, **rule},
            checkpoint={"every_updates": 4},
        )

    assert differences(*whole_and_resumed(tmp_path, job, 4, 8)) == []


def test_recall_is_learnt_with_memory(tmp_path: Path) -> None:
    job = settings(
        RECALL,
        stop={"updates": 150},
        network={"kind": "mlp", "hidden": [32], "recurrent": {"kind": "lstm", "size": 32}},
        algorithm={"kind": "vtrace", "learning_rate": 5e-3, "minibatches": 2},
        batch={"fragments": 16, "fragment_steps": 16},
    )
    paths = make_run(tmp_path, job)
    run_serial(paths, make_attempt(paths, job)[0])
    # By chance a third of the episodes return 1.
    assert evaluate(paths, episodes=60)["return_mean"] >= 0.9
