"""What each state of Slurm means stands in one row of one file."""

import ast
from pathlib import Path

import pytest

from srlhpc.cli.why import _PLAIN
from srlhpc.slurm.jobs import JobState
from srlhpc.slurm.states import STATES, WORDS, state_of

ROOT = Path(__file__).parents[2] / "srlhpc"


@pytest.mark.parametrize("row", STATES.values(), ids=STATES)
def test_state_waits_has_begun_or_has_ended(row: object) -> None:
    job = JobState("1", row.name)  # type: ignore[attr-defined]
    assert not (job.waits and (job.has_begun or not job.is_active))
    assert job.waits or not job.is_held


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_every_word_of_a_run_is_explained(word: object) -> None:
    assert word.advice or word.name in _PLAIN  # type: ignore[attr-defined]


def test_unknown_state_is_of_a_job_that_runs() -> None:
    job = JobState("1", "NEW_IN_SLURM")
    assert (job.is_active, job.waits, job.has_begun) == (True, False, True)


@pytest.mark.parametrize("name", ["REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"])
def test_held_states_wait_until_somebody_releases_them(name: str) -> None:
    assert (state_of(name).waits, JobState("1", name).is_held) == (True, True)


def test_no_other_file_names_a_state() -> None:
    names = {
        (path.name, node.value)
        for path in ROOT.rglob("*.py")
        if path.name != "states.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in STATES
    }
    assert not names, f"{names}: say it by a row of slurm/states.py"
