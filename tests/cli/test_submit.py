"""`srlhpc submit` without a cluster: Slurm's commands are faked."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srlhpc.cli.main import cli
from srlhpc.errors import ClusterError, UserError
from srlhpc.launch import submission as executor
from srlhpc.slurm.commands import SlurmRefused

ROOT = Path(__file__).parents[2]
JOB = str(ROOT / "jobs" / "catch.yaml")
LAB = str(ROOT / "jobs" / "clusters" / "lab.yaml")

Slurm = list[tuple[str, ...]]


class StandInForeman:
    """What submitit pickles here."""

    def __init__(self, folder: str) -> None:
        self.folder = folder


@pytest.fixture(autouse=True)
def foreman(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("srlhpc.launch.submitted_foreman")
    module.SubmittedForeman = StandInForeman  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "srlhpc.launch.submitted_foreman", module)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """A Slurm that takes every job; the commands it was given."""
    commands: Slurm = []

    def run(arguments: Sequence[str], timeout: float = 30.0, *, text: str | None = None) -> Any:
        commands.append(tuple(arguments))
        said = "sbatch: Job 9 to start at 2030-01-01T00:00:00 using 8 processors on cpu1,gpu1\n"
        return subprocess.CompletedProcess(arguments, 0, f"{100 + len(commands)}\n", said)

    present(monkeypatch, run, here=True)
    return commands


def present(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any], *, here: bool) -> None:
    monkeypatch.setattr(executor, "run_slurm", run)
    monkeypatch.setattr(executor, "slurm_is_here", lambda: here)
    monkeypatch.setattr("srlhpc.slurm.commands.slurm_is_here", lambda: here)


def submit(root: Path, *arguments: str, job: str = JOB, cluster: str = LAB) -> Result:
    command = ["submit", job, "--cluster", cluster, "--root", str(root), *arguments]
    return CliRunner().invoke(cli, command, catch_exceptions=False)


def refused(root: Path, *arguments: str, job: str = JOB, cluster: str = LAB) -> str:
    with pytest.raises(UserError) as caught:
        submit(root, *arguments, job=job, cluster=cluster)
    assert not root.exists()
    return str(caught.value)


def test_submit_prints_the_id_and_records_the_job(tmp_path: Path, slurm: Slurm) -> None:
    done = submit(tmp_path, "--name", "mine", "--time", "1:00:00")
    written = json.loads((tmp_path / "mine" / "slurm.json").read_text())
    assert done.stdout.strip() == json.loads((tmp_path / "mine" / "run.json").read_text())["id"]
    assert (written["minutes"], [job["id"] for job in written["jobs"]]) == (60, ["101"])
    assert written["cluster"]["signal_lead_seconds"] == 40
    assert "#SBATCH --time=60" in (tmp_path / "mine" / "slurm" / "101_submission.sh").read_text()
    assert (tmp_path / "mine" / "slurm" / "101_submitted.pkl").exists()


def test_each_job_of_a_chain_waits_for_the_one_before_and_none_is_requeued(tmp_path: Path, slurm: Slurm) -> None:
    submit(tmp_path, "--name", "mine", "--chain", "3")
    jobs = json.loads((tmp_path / "mine" / "slurm.json").read_text())["jobs"]
    assert [job["dependency"] for job in jobs] == [None, "afterany:101", "afterany:102"]
    script = (tmp_path / "mine" / "slurm" / "103_submission.sh").read_text()
    assert "#SBATCH --dependency=afterany:102" in script
    assert "#SBATCH --no-requeue" in script


def test_dry_run_shows_everything_and_makes_nothing(tmp_path: Path, slurm: Slurm) -> None:
    root = tmp_path / "runs"
    text = submit(root, "--dry-run", "--set", "actors.ranks=4").stdout
    assert "#SBATCH hetjob" in text
    assert "actor-3" in text
    assert "core-hours" in text
    assert "start estimate: Job 9 to start at 2030" in text
    assert slurm == [("sbatch", "--test-only")]
    assert not root.exists()


LARGE = """\
signal_lead_seconds: 180
time_minutes: 1440
roles:
  default: {partition: batch, cpus_per_rank: 1, memory_mb_per_rank: 1500}
  trainer: {partition: gpu, gpus_per_rank: 1, gpu_type: a100, cpus_per_rank: 8, memory_mb_per_rank: 60000}
partitions:
  batch: {nodes: 200, cpus_per_node: 128, gpus_per_node: 0, memory_mb_per_node: 256000}
  gpu: {nodes: 8, cpus_per_node: 64, gpus_per_node: 4, memory_mb_per_node: 500000}
"""


def test_dry_run_of_the_largest_job_fits_on_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    present(monkeypatch, lambda *_, **__: pytest.fail("ran a command of Slurm"), here=False)
    (tmp_path / "large.yaml").write_text(LARGE)
    job = str(ROOT / "jobs" / "hns_x32_inline_large.yaml")
    lines = submit(tmp_path / "runs", "--dry-run", job=job, cluster=str(tmp_path / "large.yaml")).stdout.splitlines()
    options = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
    learning, acting = options[: options.index("hetjob")], options[options.index("hetjob") :]
    assert {"--partition=gpu", "--nodes=8", "--ntasks=33", "--gpus-per-node=a100:4", "--mem=241500M"} <= set(learning)
    assert {"--partition=batch", "--nodes=120", "--ntasks=15360", "--ntasks-per-node=128"} <= set(acting)
    rows = [line.split(maxsplit=3) for line in lines]
    assert ["1-32", "0", "0-7", "trainer-everybody-0…31, 4 a node"] in rows
    assert ["33-15392", "1", "0-119", "actor-0…15359 + policy_server-0…15359, 128 a node"] in rows
    assert "time limit 1-00:00:00: at most 374,976.0 core-hours, 768.0 GPU-hours a job" in lines
    assert len(lines) < 50


def test_dry_run_without_slurm_shows_all_but_the_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    present(monkeypatch, lambda *_, **__: pytest.fail("ran a command of Slurm"), here=False)
    done = submit(tmp_path / "runs", "--dry-run")
    assert done.stdout.endswith("start estimate: not available (no Slurm on this machine)\n")
    assert done.exit_code == 0


def test_submit_without_slurm_makes_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    present(monkeypatch, lambda *_, **__: pytest.fail("ran a command of Slurm"), here=False)
    with pytest.raises(ClusterError, match="no 'sbatch' on this machine"):
        submit(tmp_path / "runs")
    assert not list(tmp_path.rglob("run.json"))


def test_submit_that_slurm_refuses_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: Sequence[str], timeout: float = 30.0, *, text: str | None = None) -> Any:
        raise SlurmRefused("sbatch said no", "no")

    present(monkeypatch, run, here=True)
    with pytest.raises(ClusterError, match="sbatch said no"):
        submit(tmp_path, "--name", "mine")
    assert not (tmp_path / "mine").exists()


def test_chain_that_slurm_refuses_in_the_middle_names_what_is_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["7\n"])

    def run(arguments: Sequence[str], timeout: float = 30.0, *, text: str | None = None) -> Any:
        if (answer := next(answers, None)) is None:
            raise SlurmRefused("job submit limit", "limit")
        return subprocess.CompletedProcess(arguments, 0, answer, "")

    present(monkeypatch, run, here=True)
    with pytest.raises(ClusterError, match=r"only 1 of 2 jobs of run mine are in the queue \(7\): job submit limit"):
        submit(tmp_path, "--name", "mine", "--chain", "2")
    assert (tmp_path / "mine" / "slurm.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--time", "soon"), "--time: 'soon' is no time limit; write minutes, 12:00:00"),
        (("--time", "61"), "partitions.gpu.max_minutes: is 60, but the job asks for 61 minutes"),
        (("--chain", "0"), "--chain: is 0; it must be at least 1"),
        (("--name", "../x"), "'../x' cannot be a run's name"),
        (
            ("--set", "trainers.device=cuda", "--set", "trainers.ranks=9", "--set", "actors.ring=9"),
            "on 2 nodes of partition gpu: the fullest would need",
        ),
        (("--set", "actors.rank=2"), "actors.rank: unknown key; did you mean 'ranks'?"),
        (("--set", "actors.ranks=64"), "roles.actor: cannot place 64 ranks (64 actor) on"),
    ],
)
@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_submit_refuses_what_is_wrong_and_makes_nothing(
    tmp_path: Path, slurm: Slurm, arguments: tuple[str, ...], words: str, dry_run: tuple[str, ...]
) -> None:
    assert words in refused(tmp_path / "runs", *arguments, *dry_run)
    assert slurm == []


def test_submit_lists_known_clusters(tmp_path: Path, slurm: Slurm) -> None:
    assert "known are: " in refused(tmp_path / "runs", cluster="nowhere-at-all")


def test_submit_refuses_a_root_that_no_script_can_hold(tmp_path: Path, slurm: Slurm) -> None:
    assert "characters that a batch script cannot hold" in refused(tmp_path / "a\nb")


def test_difference_of_a_checkout_from_its_commit_is_kept(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srlhpc.runs.creation.code_version", lambda: {"version": "1", "commit": "abc"})
    monkeypatch.setattr("srlhpc.runs.creation._git", lambda *_: "--- a\n+++ b")
    submit(tmp_path, "--name", "mine")
    assert (tmp_path / "mine" / "code.diff").read_text() == "--- a\n+++ b\n"


def test_dry_run_loads_neither_torch_nor_mpi() -> None:
    report = "import sys; print(*(n for n in ('torch', 'mpi4py', 'gymnasium') if n in sys.modules))"
    arguments = ["submit", str(ROOT / "jobs" / "cartpole.yaml"), "--cluster", LAB, "--dry-run"]
    statement = f"from srlhpc.cli.main import run_command_line; run_command_line({arguments!r})\n{report}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", statement], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
    assert "#SBATCH hetjob" in done.stdout
    # Of the processor, since the clock of a busy machine says little.
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0
