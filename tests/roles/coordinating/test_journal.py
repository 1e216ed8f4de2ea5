"""What the coordinator's log says."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from srlhpc.roles.coordinating.journal import Journal, whereabouts
from srlhpc.roles.coordinating.liveness import Liveness, RankRecord
from tests.roles.coordinating.coordinator_setup import TRAINER, Coordinating, record_of


def record(rank: int, label: str, host: str) -> RankRecord:
    return record_of(rank, label, silence_limit_seconds=1.0, host=host)


def test_whereabouts_are_ranks_of_each_role_by_host() -> None:
    records = [record(1, "trainer-default-0", "g1"), record(2, "actor-0", "c1"), record(3, "actor-1", "c1")]
    assert whereabouts(records) == "g1: 1 trainer; c1: 2 actors"


def test_whereabouts_of_thousands_of_hosts_are_a_few_and_how_many_more() -> None:
    text = whereabouts([record(rank, f"actor-{rank}", f"c{rank // 8}") for rank in range(8000)])
    assert text.startswith("c0: 8 actors; c1: 8 actors;")
    assert text.endswith("; and 984 more hosts")


def test_log_of_a_run_has_start_first_batch_checkpoint_and_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = Coordinating(tmp_path, {"updates": 3})
    run.all_report()
    run.wait(1)
    run.update(1)
    run.wait(1)
    run.update(3)
    run.end()
    said = [entry.getMessage() for entry in caplog.records if entry.name == "srlhpc.roles.coordinating.journal"]
    kinds = ("attempt begins", "all ranks are up", "first batch trained", "checkpoint ", "attempt ends (updates)")
    places = [next(n for n, line in enumerate(said) if line.startswith(kind)) for kind in kinds]
    assert places == sorted(places), said


def test_log_of_a_run_in_one_process_waits_for_one_rank(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run = Coordinating(tmp_path / "run")
    Journal(Liveness([], tmp_path, tmp_path), run.progress, run.checkpointing, 0.0)
    assert caplog.messages[-1].endswith("; waiting for 1 rank")


def test_log_of_training_has_a_line_now_and_then_with_the_best_return(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = Coordinating(tmp_path, {"updates": 10_000})
    for second in range(1, 600):
        run.episodes(1, float(second))
        run.update(second)
        run.wait(1)
        run.report(TRAINER)
    lines = [entry.getMessage() for entry in caplog.records if "mean return" in entry.getMessage()]
    assert 8 <= len(lines) <= 20
    assert "(best so far)" in lines[-1]
