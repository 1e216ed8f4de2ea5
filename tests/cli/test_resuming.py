"""Going on with another spec than the checkpoint's: what it cannot hold is refused before anything is stored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.cli.options import open_run
from srlhpc.data.atomic import write_json
from srlhpc.runs.paths import RunPaths
from srlhpc.slurm.jobs import JobState
from tests.failing_disk import FailingDisk
from tests.launch.written_runs import SPEC, end, hold, written_run

ROOT = Path(__file__).parents[2]
WRONG = [
    (
        "policies.default.network.hidden=[8]",
        "policies.default.network.hidden: the checkpoint has [64, 64], the spec wants [8]",
    ),
    ("policies.default.network.recurrent={kind: gru}", "policies.default.network.recurrent: the checkpoint has null"),
    ("policies.default.normalize.returns=true", "normalize.returns: the checkpoint has false, the spec wants true"),
    ("environment.rows=7", "sees observations"),
    (
        "policies={other: {network: {kind: mlp}, algorithm: {kind: ppo}, batch: {fragments: 4, fragment_steps: 8}}}",
        "agents",
    ),
    ("environment={factory: recall}", "environment: policy default of the checkpoint"),
]
"""Overrides, and what must be said."""

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on the runs of this test; gives exit code and error."""
    monkeypatch.setenv("SRLHPC_ROOT", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str]:
        try:
            code = run_command_line(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def trained(call: Call, tmp_path: Path) -> RunPaths:
    """A run with a checkpoint."""
    job = tmp_path / "small.yaml"
    job.write_text(SPEC.format(seed=1).replace("steps: 1000", "updates: 1"))
    assert call("run", str(job), "--serial", "--name", "mine")[0] == 0
    return RunPaths(tmp_path / "mine")


def test_checkpoint_that_does_not_fit_the_spec_is_refused_and_nothing_stored(
    call: Call, trained: RunPaths, tmp_path: Path
) -> None:
    before = trained.spec.read_text()
    for override, words in WRONG:
        for command in (["resume", "mine"], ["fork", "mine", "--name", "other"]):
            code, said = call(*command, "--set", "stop.updates=2", "--set", override)
            assert (code, words in said) == (2, True), (command, override, said)
        assert trained.spec.read_text() == before
    assert trained.attempt_numbers() == [1]
    assert not (tmp_path / "other").exists()


def test_checkpoint_that_fits_the_spec_continues_the_run(call: Call, trained: RunPaths) -> None:
    changes = [
        "--set",
        "policies.default.algorithm.learning_rate=1e-4",
        "--set",
        "policies.default.network.activation=relu",
    ]
    code, said = call("resume", "mine", "--set", "stop.updates=2", *changes)
    assert code == 0, said
    assert trained.attempt_numbers() == [1, 2]


def test_failed_fork_leaves_no_run(call: Call, trained: RunPaths, tmp_path: Path) -> None:
    code, said = call("fork", "mine", "--name", "other", "--cluster", "no-such-cluster")
    assert (code, "no cluster 'no-such-cluster'" in said) == (2, True)
    assert not (tmp_path / "other").exists()


def test_resume_refuses_a_queued_run_without_torch(trained: RunPaths, tmp_path: Path) -> None:
    arguments = ["resume", "mine", "--root", str(tmp_path), "--cluster", str(ROOT / "jobs/clusters/lab.yaml")]
    arguments += ["--set", "policies.default.network.hidden=[8]", "--set", "stop.updates=2"]
    program = (
        f"import sys; from srlhpc.cli.main import run_command_line; code = run_command_line({arguments}); "
        "print(code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "2 False\n", done.stderr


@pytest.mark.parametrize(("reason", "limit"), [("return_mean", "stop.return_mean"), ("updates", "stop.updates")])
def test_resume_of_a_finished_run_names_the_limit(call: Call, tmp_path: Path, reason: str, limit: str) -> None:
    end(written_run(tmp_path, "mine"), "finished", reason)
    assert f"extend it: --set {limit}=..." in call("resume", "mine")[1]


def test_modules_of_a_run_are_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "before")
    monkeypatch.chdir(tmp_path)
    written_run(tmp_path, "mine")
    monkeypatch.chdir("/")
    open_run(str(tmp_path), "mine")
    assert sys.path[-1] == str(tmp_path)
    assert os.environ["PYTHONPATH"] == f"before{os.pathsep}{tmp_path}"


def test_status_of_fifty_runs_loads_no_torch(tmp_path: Path) -> None:
    for number in range(50):
        written_run(tmp_path, f"run{number}")
    arguments = ["status", "--json", "--root", str(tmp_path)]
    program = (
        f"import sys; from srlhpc.cli.main import run_command_line; code = run_command_line({arguments}); "
        "print(code, 'torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "0 False\n"
    assert done.stdout.count('"name": "run') == 50


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs that a job was submitted for, by one who saw them idle a moment ago."""
    names: list[str] = []

    def submit(paths: RunPaths, *_: object, **__: object) -> str:
        names.append(paths.name)
        return "9"

    monkeypatch.setattr("srlhpc.launch.submission.submit_foreman", submit)
    monkeypatch.setattr("srlhpc.cli.resume.check_idle", lambda _paths: None)
    return names


@pytest.mark.parametrize("where", [["--cluster", str(ROOT / "jobs/clusters/lab.yaml")], []], ids=["job", "here"])
def test_resume_names_who_else_resumes(call: Call, trained: RunPaths, submitted: list[str], where: list[str]) -> None:
    hold(trained)
    code, said = call("resume", "mine", "--set", "stop.updates=2", *where)
    assert (code, f"is in use: process {os.getpid()} on" in said) == (2, True), said
    assert (submitted, trained.attempt_numbers()) == ([], [1])


@pytest.mark.parametrize(
    "where", [["--cluster", str(ROOT / "jobs/clusters/lab.yaml")], ["--here"]], ids=["job", "here"]
)
def test_resume_names_the_job_that_another_has_just_submitted(
    call: Call, trained: RunPaths, submitted: list[str], where: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(trained.slurm, {"jobs": [{"id": "8", "submitted": 0.0}]})
    queue = {"8": JobState("8", "PENDING")}
    monkeypatch.setattr("srlhpc.slurm.jobs.queued_jobs", lambda *_, **__: queue)
    code, said = call("resume", "mine", "--set", "stop.updates=2", *where)
    assert (code, "is in use: job 8 is PENDING" in said) == (2, True), said
    assert (submitted, trained.attempt_numbers()) == ([], [1])
    assert not trained.lease.exists()


def test_resume_on_a_full_disk_leaves_no_half_attempt(call: Call, trained: RunPaths, failing_disk: FailingDisk) -> None:
    failing_disk.fill(lambda path: "attempt.json" in path)
    code, said = call("resume", "mine", "--set", "stop.updates=2")
    assert code == 2
    assert "No space left on device; make room on that disk" in said
    assert trained.attempt_numbers() == [1]
