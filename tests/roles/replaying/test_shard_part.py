"""What a replay rank puts into checkpoints while it works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.data.segment_folder import runs_of, segments_of
from srlhpc.data.segments import Run
from srlhpc.data.windows import WindowHeader
from srlhpc.roles.replaying.shard_part import problems_of, whole_parts
from tests.failing_disk import FailingDisk
from tests.roles.replaying.replay_setup import BLOCK, LABEL, SLOTS, Replaying


def rewards(folder: Path, part: dict[str, Any]) -> list[float]:
    """The reward of each block that the part names, by which a test tells them apart."""
    return [float(block.reshape(-1)[0]) for run in runs_of(part, folder) for block in run.fields["rewards"]]


def test_part_holds_what_was_there_when_it_was_asked_for(tmp_path: Path) -> None:
    replay = Replaying(folder=tmp_path / "replay")
    for reward in range(3):
        replay.send(0, float(reward))
    while not replay.log.is_idle:
        pass
    replay.asks(1)
    replay.poll(1)
    replay.send(1, 9.0)
    number, part = replay.handed_over()
    assert (number, part["index"]) == (1, 0)
    assert part["store"]["inserted_blocks"] == 3
    assert rewards(tmp_path / "replay", part) == [0.0, 1.0, 2.0]


def test_blocks_come_in_and_are_drawn_while_others_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay, may_write = Replaying(folder=tmp_path / "replay"), threading.Event()
    runs = replay.store.runs

    def slow(first: int, end: int) -> Iterator[Run]:
        may_write.wait()
        return runs(first, end)

    monkeypatch.setattr(replay.log, "_runs", slow)
    replay.send(0, 1.0)
    replay.asks(1)
    replay.poll()
    for reward in (2.0, 3.0, 4.0):
        replay.send(0, reward)
    replay.want()
    assert replay.drawn() is not None
    may_write.set()
    _, part = replay.handed_over()
    assert rewards(tmp_path / "replay", part) == [1.0]
    replay.asks(2)
    _, part = replay.handed_over()
    assert rewards(tmp_path / "replay", part) == [1.0, 2.0, 3.0, 4.0]


def test_every_checkpoint_that_is_asked_for_gets_a_part(tmp_path: Path) -> None:
    replay = Replaying(folder=tmp_path / "replay")
    replay.send(0)
    for number in (1, 3):
        replay.asks(number)
        assert replay.handed_over()[0] == number
    replay.poll()
    assert replay.coordinator.poll() is None


def test_end_waits_for_the_last_part(tmp_path: Path) -> None:
    replay = Replaying(folder=tmp_path / "replay")
    replay.send(0, 5.0)
    replay.asks(1, stop=True)
    for outbox in (*replay.blocks, replay.draws):
        assert outbox.send_last()
    assert not replay.role.is_done
    assert replay.role.waits_for() == "writes its blocks for the last checkpoint"
    _, part = replay.handed_over()
    assert rewards(tmp_path / "replay", part) == [5.0]
    replay.poll()
    replay.windows.poll()
    replay.poll()
    assert replay.role.is_done


def test_full_disk_ends_nothing_and_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, replay = FailingDisk(monkeypatch), Replaying(folder=tmp_path / "replay")
    disk.fill(lambda path: "replay" in path)
    replay.send(0, 1.0)
    replay.asks(1)
    _, part = replay.handed_over()
    (problem,) = problems_of({LABEL: part})
    assert problem.startswith(f"{LABEL}: the disk is full")
    assert whole_parts({LABEL: part}) == {}
    replay.want()
    assert replay.drawn() is not None
    disk.heal()
    replay.asks(2)
    _, part = replay.handed_over()
    assert rewards(tmp_path / "replay", part) == [1.0]
    assert whole_parts({LABEL: part}) == {LABEL: part}


def test_serial_run_is_told_of_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, replay = FailingDisk(monkeypatch), Replaying(folder=tmp_path / "replay", serial=True)
    replay.send(0, 1.0)
    disk.fill(lambda path: "replay" in path)
    with pytest.raises(OSError, match="No space left"):
        replay.role.shard_part()
    disk.heal()
    assert rewards(tmp_path / "replay", dict(replay.role.shard_part())) == [1.0]


def test_what_came_in_before_the_attempt_is_not_told_again(tmp_path: Path) -> None:
    before = Replaying(folder=tmp_path / "replay", serial=True)
    before.fill(2)
    part = before.role.shard_part()
    runs = runs_of(part, tmp_path / "replay")
    resumed = Replaying(start_steps=2.0 * BLOCK, filled=lambda store: store.load_state(part["store"], runs))
    resumed.want()
    message = resumed.drawn()
    assert message is not None
    assert message.header[WindowHeader.INSERTED_STEPS] == 0
    assert resumed.counter("records_inserted") == 0
    assert resumed.counter("filling") == 0.0
    resumed.fill()
    resumed.windows.release(message)
    resumed.poll()
    resumed.want()
    message = resumed.drawn()
    assert message is not None
    assert message.header[WindowHeader.INSERTED_STEPS] == message.header[WindowHeader.INSERTED_VALID] == BLOCK


def test_what_was_written_is_counted(tmp_path: Path) -> None:
    replay = Replaying(folder=tmp_path / "replay")
    replay.send(0)
    assert replay.counter("kept_bytes") == 0
    replay.asks(1)
    replay.handed_over()
    assert replay.counter("kept_bytes") == sum(path.stat().st_size for path in (tmp_path / "replay").iterdir())
    assert "kept_bytes" not in Replaying().role.counters()


def test_store_that_is_overwritten_needs_no_more_files_than_it_has_blocks(tmp_path: Path) -> None:
    replay = Replaying(folder=tmp_path / "replay")
    for reward in range(3 * SLOTS):
        replay.send(0, float(reward))
    replay.asks(1)
    _, part = replay.handed_over()
    assert rewards(tmp_path / "replay", part)[-SLOTS:] == [float(reward) for reward in range(2 * SLOTS, 3 * SLOTS)]
    assert len(segments_of(part)) <= SLOTS // 2 + 1
    assert np.array_equal(part["store"]["generations"], np.full(SLOTS, 2))


def test_other_run_of_the_same_name_is_not_written_over(tmp_path: Path) -> None:
    for reward in (1.0, 2.0):
        replay = Replaying(folder=tmp_path / "replay", serial=True)
        replay.send(0, reward)
        part = dict(replay.role.shard_part())
        assert rewards(tmp_path / "replay", part) == [reward]
    assert len(list((tmp_path / "replay").iterdir())) == 2
