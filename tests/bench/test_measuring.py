"""Every benchmark gives complete rows. How fast anything is, is never asserted: other work runs on the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from srlhpc.bench.checkpoint import measure_checkpoint
from srlhpc.bench.end_to_end import Case, measure_end_to_end
from srlhpc.bench.inference import measure_inference
from srlhpc.bench.layouts import Weight, measure_layouts
from srlhpc.bench.many_ranks import measure_many_ranks
from srlhpc.bench.replay import measure_replay
from srlhpc.bench.ring import Pace, measure_ring
from srlhpc.bench.rows import Row, table
from srlhpc.bench.runs import Measure
from srlhpc.bench.streams import has_zeromq, measure_streams
from srlhpc.bench.trainer import measure_trainer
from srlhpc.errors import ClusterError, UserError
from tests.comm.launching import mpiexec

pytestmark = [pytest.mark.mpi, pytest.mark.slow]

TINY = Measure(warm_seconds=0.0, seconds=1.0, repeats=1)
WAYS = {"bare mpi4py", *(["ZeroMQ + pickle"] if has_zeromq() else [])}


@pytest.fixture(autouse=True)
def _one_launcher() -> None:
    mpiexec()


def assert_sane(rows: Sequence[Row]) -> None:
    for row in rows:
        for spread in (row.rate, row.cpu_seconds):
            assert 0 < spread.low <= spread.median <= spread.high < math.inf
        assert all(math.isfinite(value) and value >= 0 for value in row.details.values()), row.details
    assert len(table(rows)) >= 2 + len(rows)


def test_streams_have_a_row_for_each_size_with_all_ways_beside_it() -> None:
    rows = measure_streams([8 << 10, 1 << 20], actors=2, seconds=0.05, repeats=2)
    assert [row.size for row in rows] == ["8 KiB", "1 MiB"]
    assert all(set(row.reference) == WAYS | {"memcpy"} for row in rows)
    assert_sane(rows)


def test_inference_has_a_row_for_each_size_and_group() -> None:
    rows = measure_inference([256], [1, 8], actors=1, seconds=0.05, repeats=1)
    assert [row.size for row in rows] == ["256 B x 1", "256 B x 8"]
    assert all(set(row.reference) == WAYS | {"channels over MPI"} for row in rows)
    assert_sane(rows)


def test_ring_has_a_row_for_each_length_and_the_first_predicts_itself() -> None:
    rows = measure_ring([1, 2], actors=1, measure=TINY, paces=[Pace("quick", 1e-4, "sleep")])
    assert [row.size for row in rows] == ["ring 1", "ring 2"]
    predicted = rows[0].reference["predicted"].rate
    assert predicted is not None
    assert predicted.median == pytest.approx(rows[0].rate.median)
    assert_sane(rows)


def test_trainer_has_a_row_with_prefetch_and_one_without() -> None:
    rows = measure_trainer(actors=1, measure=TINY)
    assert [row.name for row in rows] == ["trainer, prefetch on", "trainer, prefetch off"]
    assert all(row.rate.high <= 100 for row in rows)
    assert_sane(rows)


def test_layouts_have_a_row_each_and_the_others_beside_the_decoupled_one() -> None:
    weight = Weight("tiny", {"kind": "mlp", "hidden": [8]}, {"observation_shape": [2]})
    rows = measure_layouts(actors=1, ring=2, measure=TINY, weights=[weight])
    assert [row.name for row in rows] == ["decoupled, tiny", "inline, tiny", "SEED, tiny"]
    assert set(rows[0].reference) == {"inline", "SEED"}
    assert_sane(rows)


def test_job_is_measured_from_its_start_to_its_memory(tmp_path: Path) -> None:
    job = tmp_path / "catch.yaml"
    job.write_text(JOB)
    rows = measure_end_to_end([Case("catch", job, ())], measure=TINY)
    details = rows[0].details
    assert details["s to the first trained batch"] > 0
    assert details["MB of PSS"] > 50
    assert_sane(rows)


def test_checkpoint_is_measured_beside_a_copy_of_its_bytes() -> None:
    (row,) = measure_checkpoint(megabytes=2, measure=Measure(0.0, 3.0, 1))
    assert "one copy in memory" in row.reference
    assert row.rate.low > 0


def test_replay_is_drawn_uniformly_and_by_priority_beside_a_bare_gather() -> None:
    rows = measure_replay([256, 1 << 10], windows=8, megabytes=1, seconds=0.05, repeats=2)
    assert [(row.name, row.size) for row in rows] == [
        ("replay, uniform", "256 B x 8"),
        ("replay, prioritized", "256 B x 8"),
        ("replay, uniform", "1 KiB x 8"),
        ("replay, prioritized", "1 KiB x 8"),
    ]
    assert all(set(row.reference) == {"bare numpy gather"} for row in rows)
    assert_sane(rows)


def test_many_ranks_are_all_alive() -> None:
    (row,) = measure_many_ranks(ranks=5, step_seconds=0.01, measure=TINY)
    # Beside the actors there are a coordinator, a policy server and a trainer.
    assert row.details["ranks alive"] == 8
    assert_sane([row])


def test_refused_job_is_the_users_error_and_a_run_that_ends_is_the_clusters(tmp_path: Path) -> None:
    job = tmp_path / "catch.yaml"
    job.write_text(JOB)
    with pytest.raises(UserError, match="did you mean 'ranks'"):
        measure_end_to_end([Case("catch", job, ("actors.rank=2",))], measure=TINY)
    broken = ("seed=3", "environment.factory=tests.broken_environment", "environment.fails_at=5")
    with pytest.raises(ClusterError, match="the world has ended"):
        measure_end_to_end([Case("catch", job, broken)], measure=TINY)


JOB = """\
environment: {factory: catch}
policies:
  default:
    network: {kind: mlp, hidden: [8]}
    algorithm: {kind: ppo, epochs: 1, minibatches: 1}
    batch: {fragments: 8, fragment_steps: 8}
actors: {ranks: 1, ring: 2, environments: 4, inference: {kind: server}}
stop: {updates: 3}
"""
