"""`srlhpc run` and `srlhpc resume`: what is refused before anything is made, and a small serial run to its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.cli.resuming import changes
from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.load import load_text
from tests.comm.launching import ROOT, mpiexec
from tests.launch.written_runs import dead, end, hold, last, written_run

JOB = """\
seed: 1
environment: {factory: catch}
policies:
  default:
    network: {kind: mlp, hidden: [8]}
    algorithm: {kind: ppo, epochs: 1, minibatches: 1}
    batch: {fragments: 4, fragment_steps: 8}
actors: {ranks: 1, ring: 1, environments: 4, inference: {kind: server}}
stop: {updates: 3}
checkpoint: {every_updates: 2}
"""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def call(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on the runs of this test; gives exit code, output, error."""
    monkeypatch.setenv("SRLHPC_ROOT", str(root))

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = run_command_line(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(JOB)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "actors.rank=2"], "did you mean 'ranks'?"),
        (["--set", "environment.factory=cach"], "did you mean 'catch'?"),
        (["--set", "policies.default.algorithm.kind=pppo"], "did you mean 'ppo'?"),
        (["--set", "actors.ranks=-1"], "actors.ranks"),
        (["--set", "actors.ranks=two"], "actors.ranks"),
        (["--set", "policies.default.batch.fragments=3"], "fragments"),
        (["--set", "policies.default.batch.burn_in_steps=2"], "burn_in"),
        (["--name", "a/b"], "cannot be a run's name"),
        (["--name", "latest"], "cannot be a run's name"),
    ],
)
def test_run_refuses_wrong_input_and_makes_nothing(
    call: Call, job: str, root: Path, arguments: list[str], message: str
) -> None:
    code, out, err = call("run", job, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not root.exists()


def test_run_refuses_a_missing_job(call: Call, root: Path) -> None:
    code, _, err = call("run", "nowhere.yaml")
    assert code == 2
    assert "nowhere.yaml" in err
    assert not root.exists()


def test_run_refuses_a_name_in_use(call: Call, job: str, root: Path) -> None:
    written_run(root, "mine")
    code, _, err = call("run", job, "--name", "mine")
    assert code == 2
    assert "the name 'mine' is in use" in err


def test_serial_run_finishes_and_can_be_resumed(call: Call, job: str, root: Path) -> None:
    code, out, err = call("run", job, "--serial", "--name", "mine")
    assert (code, out) == (0, "")
    assert "finished (updates)" in err
    (state,) = json.loads(call("status", "--json", "mine")[1])
    assert (state["state"], state["reason"], state["updates"], state["attempt"]) == ("finished", "updates", 3, 1)

    code, _, err = call("resume", "mine")
    assert (code, "is finished (updates)" in err) == (0, True)
    assert RunPaths(root / "mine").attempt_numbers() == [1]

    code, _, err = call("resume", "mine", "--set", "stop.updates=5")
    assert code == 0
    assert "resumes from updates-000000003.h5: 3 updates" in err
    assert "changed: stop.updates: 3 -> 5" in err
    (state,) = json.loads(call("status", "--json", "mine")[1])
    assert (state["state"], state["updates"], state["attempt"]) == ("finished", 5, 2)
    attempt = read_json(RunPaths(root / "mine").attempt(2).attempt) or {}
    assert (attempt["serial"], attempt["checkpoint"]) == (True, "updates-000000003.h5")
    assert attempt["overrides"] == ["stop.updates=5"]


@pytest.mark.gpu
@pytest.mark.parametrize("how", [["--serial"], []], ids=["serial", "mpi"])
def test_cartpole_trains_and_resumes_on_a_gpu(call: Call, how: list[str]) -> None:
    if not how:
        mpiexec()
    devices = ["--set", "trainers.device=cuda", "--set", "policy_servers.device=cuda"]
    job = str(ROOT / "jobs" / "cartpole.yaml")
    code, _, err = call("run", job, *how, *devices, "--set", "stop.updates=5", "--name", "mine")
    assert code == 0, err
    code, _, err = call("resume", "mine", "--set", "stop.updates=8")
    assert code == 0, err
    (state,) = json.loads(call("status", "--json", "mine")[1])
    assert (state["state"], state["updates"]) == ("finished", 8)


def test_resume_refuses_a_run_in_use(call: Call, root: Path) -> None:
    paths = written_run(root, "mine")
    hold(paths)
    code, _, err = call("resume", "mine")
    assert code == 2
    assert "is in use" in err
    assert "srlhpc cancel mine" in err
    assert paths.attempt_numbers() == [1]


def test_resume_takes_the_checkpoint_before_a_broken_one_and_says_why(call: Call, job: str, root: Path) -> None:
    call("run", job, "--serial", "--name", "mine")
    newest = CheckpointFolder(root / "mine" / "checkpoints").files()[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    code, _, err = call("resume", "mine", "--set", "stop.updates=4")
    assert code == 0
    assert f"skipped: {newest}: is truncated" in err
    assert "resumes from updates-000000002.h5: 2 updates" in err


def test_resume_refuses_broken_checkpoints(call: Call, root: Path) -> None:
    paths = written_run(root, "mine")
    hold(paths, dead())
    (paths.checkpoints / "updates-000000001.h5").write_text("no")
    code, _, err = call("resume", "mine")
    assert code == 2
    assert "of 1 checkpoint none can be used" in err
    assert not paths.lease.exists()
    assert paths.attempt_numbers() == [1]


def test_resume_by_an_impossible_spec_changes_nothing(call: Call, root: Path) -> None:
    paths = written_run(root, "mine")
    end(paths, "interrupted", "signal")
    before = paths.spec.read_text()
    assert call("resume", "mine", "--set", "policies.default.batch.fragments=3")[0] == 2
    assert (paths.spec.read_text(), last(paths).number) == (before, 1)


def test_changed_settings_have_both_values() -> None:
    before, after = (load_text(JOB, "job"), load_text(JOB.replace("ranks: 1", "ranks: 2"), "job"))
    assert changes(before, after) == ["actors.ranks: 1 -> 2"]
