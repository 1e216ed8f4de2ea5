"""`srlhpc spec`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from srlhpc.cli.spec import command
from srlhpc.errors import UserError
from srlhpc.specs.load import load_experiment, load_text

JOB = str(Path(__file__).parents[2] / "jobs" / "cartpole.yaml")


def output(*arguments: str) -> str:
    return CliRunner().invoke(command, arguments, catch_exceptions=False).stdout


def test_printed_spec_is_a_job_file() -> None:
    assert load_text(output(JOB, "--set", "seed=7"), "stdout") == load_experiment(JOB, ["seed=7"])


def test_printed_schema_is_json() -> None:
    assert "actors" in json.loads(output("--schema"))["properties"]


def test_printed_schema_of_a_job_has_its_modules() -> None:
    assert "envs__gymnasium__Settings" in json.loads(output("--schema", JOB))["$defs"]


def test_plan_of_a_job_has_a_row_for_every_rank() -> None:
    assert "actor-1" in output("--plan", JOB, "--set", "actors.ranks=2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a job file, for example: srlhpc spec jobs/cartpole.yaml"),
        (["--schema", "--plan", JOB], "--schema and --plan exclude each other; give one of them"),
        (["--schema", "--set", "seed=1"], "--set needs a job file to override"),
    ],
)
def test_spec_refuses_arguments_that_contradict(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        output(*arguments)
    assert str(caught.value) == message


def test_batch_that_cannot_be_filled_names_the_line(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(f"base: {JOB}\npolicies:\n  default:\n    batch: {{fragments: 7}}\n")
    with pytest.raises(
        UserError, match=r"/job\.yaml:4: policies\.default\.batch\.fragments: is 7; one block brings 8 "
    ):
        output("--plan", str(job))
