"""`srlhpc doctor` without a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.doctor import examination
from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.slurm_facts import SlurmFacts
from srlhpc.runs.processes import is_used
from srlhpc.runs.shared_memory import FOLDER
from srlhpc.slurm.commands import NoSlurm, SlurmSilent
from tests.launch.fake_runs import wait_for

GOOD, WARNED, BAD = ok("MPI", "2 ranks"), warning("/dev/shm", "small", "make it larger"), fault("MPI", "1 rank", "help")


def without_slurm() -> SlurmFacts:
    raise NoSlurm("no 'scontrol' on this machine")


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the examination of this machine find something."""

    def let(*findings: Finding) -> None:
        monkeypatch.setattr(examination, "examine_here", lambda _: iter(findings))

    return let


@pytest.mark.parametrize(("findings", "code"), [((GOOD,), 0), ((GOOD, WARNED), 0), ((WARNED, BAD), 3)])
def test_exit_code_is_that_of_the_worst_finding(
    examined: Callable[..., None], findings: tuple[Finding, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    examined(*findings)
    with pytest.raises(SystemExit) as ended:
        run_command_line(["doctor"])
    assert ended.value.code == code
    assert capsys.readouterr().out.splitlines() == [finding.line for finding in findings]


def test_lines_are_in_columns() -> None:
    assert [GOOD.line, WARNED.line] == [
        "ok       MPI:                2 ranks",
        "warning  /dev/shm:           small; make it larger",
    ]


def test_json_has_level_and_findings(examined: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    examined(GOOD, WARNED)
    with pytest.raises(SystemExit):
        run_command_line(["doctor", "--json"])
    content = json.loads(capsys.readouterr().out)
    assert content["level"] == "warning"
    assert content["findings"][1] == {
        "level": "warning",
        "what": "/dev/shm",
        "found": "small",
        "remedy": "make it larger",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--wait", "0"], "--wait: is 0; it must be more than 0"),
        (["--wait", "nan"], "--wait: is nan"),
        (["--wait", "soon"], "'soon' is not a valid"),
        (["--cluster", "nowhere-at-all"], "no cluster 'nowhere-at-all'"),
        (["--root", __file__], "is no folder"),
        (["--root", "a\nb"], "characters that a batch script cannot hold"),
    ],
)
def test_doctor_refuses_wrong_options(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["doctor", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_profile_without_a_place_has_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("roles:\n  actor: {partition: one}\npartitions:\n  one: {nodes: 1, cpus_per_node: 1}\n")
    assert run_command_line(["doctor", "--cluster", str(path), "--root", str(tmp_path)]) == 2
    assert f"{path}:2: roles.actor: cannot place 2 ranks" in capsys.readouterr().err


def test_doctor_of_a_cluster_without_slurm_is_refused_after_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(examination, "read_slurm", without_slurm)
    assert run_command_line(["doctor", "--cluster", "lab", "--root", str(tmp_path)]) == 3
    assert "no 'scontrol' on this machine" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def silent() -> SlurmFacts:
    raise SlurmSilent("does not answer: Connection refused")


@pytest.mark.mpi
@pytest.mark.parametrize(("slurm", "level"), [(without_slurm, "ok"), (silent, "warning")])
def test_doctor_of_a_healthy_machine_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm: Callable[[], SlurmFacts], level: str
) -> None:
    monkeypatch.setattr(examination, "read_slurm", slurm)
    before = leftovers()
    found = {finding.what: finding for finding in examination.examine_here(tmp_path / "runs")}
    assert found["MPI"].found.startswith("2 ranks on 1 node in one world (")
    assert found["all-reduce"].found == "gloo over 2 ranks on 1 node"
    assert found["HDF5 file locks"].level == "ok"
    assert found["Slurm"].level == level
    assert list(tmp_path.iterdir()) == []
    wait_for(lambda: leftovers() <= before)


def leftovers() -> set[Path]:
    """Files of MPI that nobody uses. Other tests make and remove some at any time."""
    return {path for pattern in ("mpich_*", "ucx_shm_*") for path in FOLDER.glob(pattern) if not is_used(path)}
