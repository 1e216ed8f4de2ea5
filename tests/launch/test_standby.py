"""Ranks of the next attempt that stand by: when they are started, taken, and ended without a trace."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.launch import standby as module
from srlhpc.launch.standby import Standby, StandingBy
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.progress import ProgressLine
from srlhpc.slurm.allocation import Allocation, Component
from tests.launch.making_runs import make_attempt, make_run, settings

ALLOCATION = Allocation((Component({"partition": "cpu"}, 0, 3, 1, (3,), 3, 0),), 10)


class Fixture:
    """A run whose first attempt trains; srun is replaced by a process that waits for ever."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *, is_wanted: bool = True) -> None:
        job = settings({"factory": "catch"}, stop={"updates": 5})
        self.paths = make_run(root, job)
        _, plan = make_attempt(self.paths, job, serial=False)
        self.steps: list[subprocess.Popen[bytes]] = []
        self.programs: list[list[str]] = []
        self.swept: list[AttemptPaths] = []
        self.said = io.StringIO()
        monkeypatch.setattr(module, "start_step", self._start_step)
        monkeypatch.setattr(module, "sweep_nodes", lambda attempt, *_: self.swept.append(attempt))
        monkeypatch.setattr(module, "_LOOK_SECONDS", -1.0)
        monkeypatch.setattr(module, "_SCRIPTS_SECONDS", 0.0)
        progress = ProgressLine(self.said)
        self.standby = Standby(
            self.paths, "7", plan, ALLOCATION, "pmi2", start_seconds=60.0, progress=progress, is_wanted=is_wanted
        )

    def _start_step(self, _attempt: AttemptPaths, _ranks: Any, program: list[str], *_: Any, stand_by: bool) -> Any:
        assert stand_by
        self.programs.append(program)
        self.steps.append(subprocess.Popen(["sleep", "1000"]))
        return self.steps[-1]

    @property
    def next(self) -> AttemptPaths:
        return self.paths.attempt(2)

    @property
    def has_left_nothing(self) -> bool:
        is_gone = all(step.poll() is not None for step in self.steps)
        return is_gone and [path.name for path in self.paths.attempts.iterdir()] == ["0001"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Fixture(tmp_path, monkeypatch)
    yield made
    made.standby.end()
    assert all(step.poll() is not None for step in made.steps)


def test_others_stand_by_once_for_an_attempt_that_trains_and_are_no_attempt_yet(run: Fixture) -> None:
    run.standby.tend(trains=False)
    assert run.steps == []
    run.standby.tend(trains=True)
    run.standby.tend(trains=True)
    assert [program[-1] for program in run.programs] == ["standby"]
    assert run.next.standby.exists()
    assert run.paths.attempt_numbers() == [1]


def test_profile_without_standby_has_none_stand_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Fixture(tmp_path, monkeypatch, is_wanted=False)
    run.standby.tend(trains=True)
    assert run.standby.take() is None
    assert run.steps == []


@pytest.mark.parametrize("is_ready", [True, False])
def test_next_attempt_is_that_of_the_ranks_that_stand_by(run: Fixture, is_ready: bool) -> None:
    run.standby.tend(trains=True)
    if is_ready:
        run.next.ready.touch()
    taken = run.standby.take()
    assert taken == (run.next, run.steps[0])
    assert run.paths.attempt_numbers() == [1, 2]
    # Not described yet: that is what the ranks wait for.
    assert not run.next.attempt.exists()
    run.standby.end()
    assert run.steps[0].poll() is None
    run.standby.tend(trains=True)
    assert run.paths.attempt(3).standby.exists()
    run.steps[0].kill()
    run.steps[0].wait()


def lose_a_rank(run: Fixture) -> None:
    run.next.exit(1).write_text("1 1.0\n")
    write_json(run.next.failure(1), {"rank": 1, "label": "trainer-default-0", "message": "no room", "time": 1.0})


def end_srun(run: Fixture) -> None:
    run.steps[0].kill()
    run.steps[0].wait()


def end_a_part(run: Fixture) -> None:
    (run.next.logs / "srun.log").write_text("srun: Job step aborted: Waiting up to 32 seconds\n")


def send_term(run: Fixture) -> None:
    run.next.terminated.touch()


PROBLEMS = [
    (lose_a_rank, "no room"),
    (end_srun, "srun ended with -9"),
    (end_a_part, "a part of their step"),
    (send_term, "TERM"),
]


@pytest.mark.parametrize(("happen", "said"), PROBLEMS)
def test_one_lost_rank_ends_all_that_stand_by_and_is_reported_once(run: Fixture, happen: Any, said: str) -> None:
    run.standby.tend(trains=True)
    run.next.ready.touch()
    run.standby.tend(trains=True)
    happen(run)
    for _ in range(3):
        run.standby.tend(trains=True)
    assert run.has_left_nothing
    assert run.said.getvalue().count("no ranks stand by") == 1
    assert said in run.said.getvalue()
    assert len(run.steps) == 1
    # The next attempt may have some again.
    assert run.standby.take() is None
    run.standby.tend(trains=True)
    assert len(run.steps) == 2


@pytest.mark.parametrize("happen", [end_a_part, send_term])
def test_scripts_that_end_their_ranks_after_term_are_not_killed_meanwhile(
    run: Fixture, monkeypatch: pytest.MonkeyPatch, happen: Any
) -> None:
    monkeypatch.setattr(module, "_SCRIPTS_SECONDS", 60.0)
    run.standby.tend(trains=True)
    end_srun(run)
    run.steps[0] = step = subprocess.Popen(["sh", "-c", "sleep 0.5; exit 7"])
    monkeypatch.setattr(run.standby, "_waiting", StandingBy(run.next, step))
    happen(run)
    run.standby.end()
    assert step.returncode == 7


def test_node_of_the_job_is_swept_without_slurm_once_slurm_starts_no_more_steps(
    run: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = list[AttemptPaths]()
    monkeypatch.setattr(module, "sweep_nodes", lambda *_: "the job is being cancelled")
    monkeypatch.setattr(module, "sweep_here", lambda attempt, _job: swept.append(attempt))
    run.standby.tend(trains=True)
    run.standby.end()
    assert swept == [run.next]


@pytest.mark.parametrize(("happen", "_said"), PROBLEMS)
def test_ranks_that_were_lost_since_the_last_look_are_not_taken(run: Fixture, happen: Any, _said: str) -> None:
    run.standby.tend(trains=True)
    happen(run)
    assert run.standby.take() is None
    assert run.has_left_nothing


def test_end_sweeps_the_nodes_of_ranks_that_still_start(run: Fixture) -> None:
    run.standby.tend(trains=True)
    run.standby.end()
    assert run.swept == [run.next]
    assert run.has_left_nothing
    run.standby.tend(trains=True)
    run.next.ready.touch()
    run.standby.end()
    assert len(run.swept) == 1
    assert run.has_left_nothing


def test_ranks_that_are_not_ready_in_time_are_given_up(run: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    run.standby.tend(trains=True)
    monkeypatch.setattr(module.time, "monotonic", lambda now=module.time.monotonic: now() + 61.0)
    run.standby.tend(trains=True)
    assert run.has_left_nothing
    assert "not ready after 60 s" in run.said.getvalue()


def test_ranks_that_stand_by_take_over_a_job_whose_memory_ran_out_and_no_others_follow(run: Fixture) -> None:
    run.standby.tend(trains=True)
    run.standby.forbid()
    assert run.standby.take() is not None
    run.standby.tend(trains=True)
    assert len(run.steps) == 1
    end_srun(run)


def test_none_stand_by_on_a_full_disk_and_nothing_else_happens(run: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "describe", full)
    for _ in range(3):
        run.standby.tend(trains=True)
    assert run.paths.attempt_numbers() == [1]
    assert run.said.getvalue().count("No space left") == 1
    monkeypatch.undo()
    monkeypatch.setattr(module, "start_step", run._start_step)
    assert run.standby.take() is None
    run.standby.tend(trains=True)
    assert run.next.standby.exists()


def test_ranks_that_stood_by_while_everything_was_killed_are_no_attempt_and_replaced(run: Fixture) -> None:
    run.standby.tend(trains=True)
    left = run.next.folder / "logs" / "srun.log"
    left.write_text("of the killed")
    assert run.paths.last_attempt() == run.paths.attempt(1)
    assert run.paths.new_attempt() == run.next
    assert not left.exists()
    assert run.paths.attempt_numbers() == [1, 2]
