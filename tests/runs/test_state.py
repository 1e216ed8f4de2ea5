"""Where a run stands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.runs.creation import create_run
from srlhpc.runs.state import SILENT_SECONDS, run_state, silence
from srlhpc.slurm.commands import SlurmRefused
from tests.launch.written_runs import STATUS, dead, end, hold, last, written_run

COUNTERS = {"steps", "agent_steps", "frames", "updates", "version", "episodes", "seconds", "roles", "timing"}
MEASURES = {"return_mean", "steps_per_second", "policy_lag_mean", "policy_lag_max", "bottleneck"}
OTHERS = {"run", "name", "state", "reason", "attempt", "ranks_planned", "ranks_alive", "last_checkpoint"}


def test_state_has_every_promised_key(tmp_path: Path) -> None:
    promised = COUNTERS | MEASURES | OTHERS
    assert promised <= set(run_state(written_run(tmp_path, "a")))
    assert promised <= set(run_state(create_run(tmp_path, "b", "b", "", 1, [])))


def test_run_of_a_living_holder_is_running(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a")
    hold(paths)
    state = run_state(paths)
    assert (state["state"], state["phase"], state["ranks_alive"], state["steps"]) == ("running", "training", 2, 4096)


@pytest.mark.parametrize(("written_ago", "is_silent"), [(0.0, False), (10 * SILENT_SECONDS, True)])
@pytest.mark.parametrize("clock_is_ahead_by", [-3600.0, 0.0, 3600.0])
def test_silence_is_the_age_of_the_status_whatever_the_clock_of_its_host_says(
    tmp_path: Path, clock_is_ahead_by: float, written_ago: float, is_silent: bool
) -> None:
    paths = written_run(tmp_path, "a")
    hold(paths)
    written = paths.status.stat().st_mtime - written_ago
    write_json(paths.status, STATUS | {"time": written + clock_is_ahead_by})
    os.utime(paths.status, (written, written))
    assert (silence(run_state(paths)) is not None) == is_silent


def test_run_whose_new_attempt_has_not_reported_is_starting(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a")
    end(paths, "interrupted", "signal")
    paths.new_attempt()
    hold(paths)
    state = run_state(paths)
    assert (state["state"], state["phase"], state["attempt"], state["ranks_alive"]) == ("running", "starting", 2, 0)


def test_end_that_the_foreman_wrote_counts(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a")
    end(paths, "finished", "steps", "done")
    state = run_state(paths)
    assert (state["state"], state["reason"], state["message"], state["ranks_alive"]) == ("finished", "steps", "done", 0)


def test_run_of_a_dead_holder_was_killed(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a")
    hold(paths, dead())
    assert (run_state(paths)["state"], run_state(paths)["reason"]) == ("failed", "killed")


def test_outcome_counts_where_the_foreman_was_killed_after_it(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a")
    hold(paths, dead())
    write_json(last(paths).outcome, {"state": "finished", "reason": "return_mean", "message": ""})
    assert (run_state(paths)["state"], run_state(paths)["reason"]) == ("finished", "return_mean")


def test_run_that_never_started_is_pending(tmp_path: Path) -> None:
    assert run_state(create_run(tmp_path, "b", "b", "", 1, []))["state"] == "pending"


def test_last_of_several_checkpoints_is_named(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "a")
    for name in ("updates-000000009.h5", "updates-000000012.h5", ".updates-000000013.h5.1.writing"):
        (paths.checkpoints / name).touch()
    state = run_state(paths)
    assert (state["last_checkpoint"], state["last_checkpoint_updates"]) == ("updates-000000012.h5", 12)


def test_run_on_slurm_that_ran_out_of_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = written_run(tmp_path, "a")
    write_json(paths.slurm, {"jobs": [{"id": "7", "submitted": 0.0}]})
    write_json(last(paths).attempt, {"ranks": 3, "job": "7"})
    (last(paths).logs / "srun.log").write_text("slurmstepd: error: StepId=7.0 exceeded memory limit (9 > 1)\n")
    end(paths, "failed", "killed", "all ranks were gone")

    def refuse(arguments: list[str], **_: object) -> None:
        raise SlurmRefused("no", "Invalid job id specified")

    monkeypatch.setattr("srlhpc.slurm.jobs.run_slurm", refuse)
    assert run_state(paths)["state"] == "out of memory"
    assert "exceeded memory limit" in run_state(paths)["message"]
