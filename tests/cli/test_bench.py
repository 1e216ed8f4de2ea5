"""`srlhpc bench`: what is refused, and that rows come out as plain data."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from tests.comm.launching import mpiexec

Call = Callable[..., tuple[int, str, str]]

NEEDY = """\
environment: {factory: tests.bench.needy_environment}
policies:
  default:
    network: {kind: mlp}
    algorithm: {kind: ppo}
    batch: {fragments: 8, fragment_steps: 8}
actors: {ranks: 1}
stop: {updates: 3}
"""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command; gives exit code, output, error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command_line(["bench", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["streams", "--sizes", "8 kilo"], "write them like 8KiB,2MiB"),
        (["streams", "--sizes", "0KiB"], "write them like 8KiB,2MiB"),
        (["inference", "--groups", "1,two"], "write them like 1,2,4"),
        (["ring", "--seconds", "0"], "0"),
        (["layouts", "--cores", "100000"], "--cores 100000: only"),
        (["end-to-end", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bench_refuses_wrong_input(call: Call, arguments: list[str], message: str) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    "what", ["streams", "inference", "ring", "trainer", "layouts", "end-to-end", "checkpoint", "replay", "many-ranks"]
)
def test_bench_without_mpiexec_names_the_remedy(
    call: Call, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = call(what)
    assert (code, out) == (2, "")
    assert "pip install mpich" in err


def test_bench_refuses_a_job_whose_package_is_missing(call: Call, tmp_path: Path) -> None:
    job = tmp_path / "needy.yaml"
    job.write_text(NEEDY)
    code, _, err = call("end-to-end", str(job))
    assert code == 2
    assert "needs no_such_package, which is not installed: pip install 'srlhpc[arena]'" in err


@pytest.mark.mpi
def test_rows_as_json_have_name_size_rate_cpu_seconds_and_reference(call: Call) -> None:
    mpiexec()
    code, out, _ = call("streams", "--sizes", "8KiB,64KiB", "--seconds", "0.05", "--repeats", "1", "--json")
    assert code == 0
    rows = json.loads(out)
    assert [row["size"] for row in rows] == ["8 KiB", "64 KiB"]
    for row in rows:
        assert row["name"] == "sample stream"
        assert row["rate"] > 0
        assert row["cpu_seconds"] > 0
        assert row["reference"]["bare mpi4py"]["rate"] > 0
