from __future__ import annotations

import json
from pathlib import Path

import pytest

from srlhpc.roles.coordinating.liveness import LONGEST_WORK_SECONDS, Liveness
from tests.roles.coordinating.coordinator_setup import record_of


def watching(folder: Path, ranks: int) -> Liveness:
    (folder / "exits").mkdir()
    (folder / "failures").mkdir()
    records = [record_of(rank, f"actor-{rank - 1}") for rank in range(1, ranks)]
    return Liveness(records, folder / "exits", folder / "failures")


def test_looks_at_many_living_ranks_open_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    liveness = watching(tmp_path, 1000)
    (tmp_path / "exits" / "7").write_text("137 1.0")
    opened: list[str] = []
    read = Path.read_text

    def noted(path: Path) -> str:
        opened.append(path.name)
        return read(path)

    monkeypatch.setattr(Path, "read_text", noted)
    assert [failure.record.rank for failure in liveness.look(1.0)] == [7]
    assert liveness.look(2.0) == []
    assert opened == ["rank-00007.json", "7"]


def test_a_rank_that_wrote_why_and_ended_is_known_by_what_it_wrote(tmp_path: Path) -> None:
    liveness = watching(tmp_path, 3)
    (tmp_path / "exits" / "2").write_text("1 1.0")
    (tmp_path / "failures" / "rank-00002.json").write_text(json.dumps({"kind": "diverged", "message": "nan"}))
    (failure,) = liveness.look(1.0)
    assert (failure.record.rank, failure.kind, failure.message) == (2, "diverged", "nan")


def test_a_file_that_is_being_written_is_read_at_the_next_look(tmp_path: Path) -> None:
    liveness = watching(tmp_path, 3)
    (tmp_path / "exits" / "2").touch()
    assert liveness.look(1.0) == []
    (tmp_path / "exits" / "2").write_text("137 1.0")
    assert [failure.kind for failure in liveness.look(2.0)] == ["killed"]


def test_silence_is_found_where_the_folders_cannot_be_listed(tmp_path: Path) -> None:
    record = record_of(1, "actor-0", reported=True)
    liveness = Liveness([record], tmp_path / "away", tmp_path / "away")
    assert liveness.look(299.0) == []
    assert [failure.kind for failure in liveness.look(301.0)] == ["silence"]


def feeling(folder: Path) -> tuple[Liveness, Path]:
    """Of one rank, an actor that was heard of at 0; and the file of its pulse."""
    record = record_of(1, "actor-0", reported=True)
    return Liveness([record], folder / "away", folder / "away", pulses=folder), folder / "1"


def test_rank_inside_a_long_piece_of_work_is_not_silent_while_it_has_a_pulse(tmp_path: Path) -> None:
    liveness, pulse = feeling(tmp_path)
    for second in range(0, 1200, 10):
        pulse.write_text(f"{second}")
        assert liveness.look(float(second)) == []
    assert liveness.look(1480.0) == []
    assert [failure.message for failure in liveness.look(1500.0)] == ["has been silent for 1500 s"]


def test_rank_that_computes_for_ever_counts_as_dead_in_the_end(tmp_path: Path) -> None:
    liveness, pulse = feeling(tmp_path)
    found: list[float] = []
    for second in range(0, 4000, 10):
        pulse.write_text(f"{second}")
        found += [float(second) for _ in liveness.look(float(second))]
    assert found == [LONGEST_WORK_SECONDS + 10]
