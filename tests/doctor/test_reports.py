"""What ranks leave in the working folder."""

from __future__ import annotations

from pathlib import Path

from srlhpc.data.atomic import write_json
from srlhpc.doctor.batch import passing_failure
from srlhpc.doctor.reports import CheckedRank, WorkFolder, read_reports


def made(folder: Path) -> WorkFolder:
    work = WorkFolder(folder)
    work.make([CheckedRank(0, "first", needs_torch=True, gpus=0.5)])
    return work


def test_dead_rank_has_stage_exit_status_and_last_line(tmp_path: Path) -> None:
    work = made(tmp_path)
    write_json(work.report(0), {"stage": "the start of MPI"})
    work.attempt.exit(0).write_text("135 17.5\n")
    work.attempt.log(0, "first").write_text("one\ntwo\n\n")
    (rank,) = read_reports(work)
    assert (rank.stage, rank.exit_code, rank.last_output, rank.rank.gpus) == ("the start of MPI", 135, "two", 0.5)
    assert rank.has_failed


def test_rank_without_a_report_is_empty(tmp_path: Path) -> None:
    (rank,) = read_reports(made(tmp_path))
    assert (rank.stage, rank.exit_code, rank.last_output, rank.has_failed) == ("", None, "", False)


def test_start_that_fails_in_passing_is_tried_again_from_nothing(tmp_path: Path) -> None:
    work = made(tmp_path)
    write_json(work.report(0), {"stage": "the start of MPI"})
    work.attempt.exit(0).write_text("15 17.5\n")
    work.attempt.log(0, "first").write_text("MPIDI_UCX_comm_addr_exchange: bad\n")
    assert passing_failure(work) == "MPIDI_UCX_comm_addr_exchange: bad"
    work.try_again()
    assert (work.attempt.number, read_reports(work)[0].stage, passing_failure(work)) == (2, "", "")
