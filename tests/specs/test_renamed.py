"""Former words of job files and profiles are understood, and a warning says today's."""

import logging
from pathlib import Path
from typing import ClassVar

import pytest

from srlhpc.errors import UserError
from srlhpc.specs.cluster import ClusterProfile, load_cluster
from srlhpc.specs.load import dump_experiment, load_experiment, load_job
from srlhpc.specs.role_sections import ActorsSpec
from srlhpc.specs.spec import Spec
from tests.specs.jobs import JOB, write


class Room(Spec):
    former_keys: ClassVar[dict[str, str]] = {"breadth": "width"}
    former_values: ClassVar[dict[str, dict[str, str]]] = {"shape": {"oblong": "rectangle"}}

    width: int
    shape: str = "rectangle"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job file that says `concurrency` for what is called `ring`."""
    monkeypatch.setattr(ActorsSpec, "former_keys", {"concurrency": "ring"})
    return write(tmp_path, JOB.replace("  ranks: 2\n", "  ranks: 2\n  concurrency: 3\n"))


def test_former_key_and_value_mean_those_of_today() -> None:
    assert Room.model_validate({"breadth": 3, "shape": "oblong"}) == Room(width=3, shape="rectangle")


def test_todays_key_counts_where_both_are_given() -> None:
    assert Room.model_validate({"breadth": 3, "width": 4}).width == 4


def test_former_word_of_a_job_file_is_reported_with_place_and_new_word(
    job: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert load_job(job).spec.actors.ring == 3
    (record,) = caplog.records
    line = 1 + job.read_text().splitlines().index("  concurrency: 3")
    assert record.levelno == logging.WARNING
    assert record.message.startswith(f"{job}:{line}: actors.concurrency is called ring now")


def test_wrong_value_of_a_former_key_is_refused_with_its_line(job: Path) -> None:
    job.write_text(job.read_text().replace("concurrency: 3", "concurrency: some"))
    line = 1 + job.read_text().splitlines().index("  concurrency: some")
    with pytest.raises(UserError, match=rf"job\.yaml:{line}: actors\.concurrency: is "):
        load_job(job)


def test_spec_of_a_run_is_read_without_a_warning_and_written_in_todays_words(
    job: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = load_experiment(job)
    assert not caplog.records
    assert "concurrency" not in dump_experiment(spec)
    assert load_experiment(job, ["actors.ring=2"]).actors.ring == 2


def test_former_word_of_an_override_is_reported_for_a_run_too(job: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load_experiment(job, ["actors.concurrency=2"]).actors.ring == 2
    assert ["--set" in record.message for record in caplog.records] == [True]


def test_former_word_of_a_profile_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ClusterProfile, "former_keys", {"minutes": "time_minutes"})
    (tmp_path / "mine.yaml").write_text("minutes: 30\n")
    assert load_cluster(str(tmp_path / "mine.yaml")).time_minutes == 30
    assert "mine.yaml:1: minutes is called time_minutes now" in caplog.text
