"""Parts of several policies become one file; chunks become parts."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import CHUNK, CHUNK_BYTES
from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.checkpoint_entries import Tree
from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.data.score import Rule
from srlhpc.data.segment_folder import SegmentFolder
from srlhpc.data.segments import Segment, segments_to_tree
from srlhpc.roles.checkpoint_parts import PartReceiver, PartSender, slots_of
from srlhpc.roles.coordinating.checkpointing import Checkpointing, updates_of


def ends(source: int = 1, *, slots: int = 4) -> tuple[PartSender, PartReceiver]:
    transport, link = InProcessTransport(), Link(Stream.PARTS, source, 0)
    return PartSender(transport.outbox(link, CHUNK, slots=slots)), PartReceiver(transport.inbox([link], CHUNK, pool=2))


def part(updates: int) -> dict[str, Any]:
    return {"parameters": {"w": np.full(3, updates)}, "counters": {"updates": updates, "steps": 5, "agent_steps": 6}}


def meta() -> dict[str, Any]:
    return {"return_mean": 1.5, "returns": [1.0, 2.0], "statistics": {"boxes": [3.0, 4.0]}, "updates": -1}


class Parts:
    """Policies `first` and `second`, each with a sender."""

    def __init__(
        self,
        folder: CheckpointFolder,
        *,
        in_thread: bool = False,
        replay: Mapping[str, Any] | None = None,
        **roles: Any,
    ) -> None:
        made = {"first": ends(1), "second": ends(2)}
        self.senders = {name: sender for name, (sender, _) in made.items()}
        receivers = {name: receiver for name, (_, receiver) in made.items()}
        state = (lambda: roles) if roles else None
        self.checkpointing = Checkpointing(
            folder, receivers, meta, roles_state=state, in_thread=in_thread, **(replay or {})
        )

    def send(self, policy: str, updates: int) -> None:
        self.senders[policy].begin(self.checkpointing.asked, part(updates))
        self.senders[policy].poll()
        self.checkpointing.poll()


def test_parts_of_different_checkpoints_are_never_put_together(tmp_path: Path) -> None:
    parts = Parts(CheckpointFolder(tmp_path))
    parts.checkpointing.ask()
    parts.send("first", 7)
    parts.checkpointing.ask()
    parts.send("second", 9)
    assert parts.checkpointing.last is None
    parts.send("first", 8)
    assert parts.checkpointing.is_idle
    assert [path.name for path in CheckpointFolder(tmp_path).files()] == ["updates-000000008.h5"]


def test_checkpoint_whose_replay_was_not_taken_over_is_not_written_over_before_training(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    old = folder.save({"policies": {"first": part(7), "second": part(9)}, "replay": {"shard": {"blocks": 3}}}, 7)
    parts = Parts(folder, replay={"spared": (old, updates_of(read_checkpoint(old)))})

    for first, second in ((7, 9), (7, 10)):
        parts.checkpointing.ask()
        parts.send("first", first)
        parts.send("second", second)

        assert (parts.checkpointing.last, parts.checkpointing.last_updates) == (old, 7)
        assert ("replay" in read_checkpoint(old)) == (second == 9)


def test_part_that_comes_while_a_file_is_written_is_not_taken_for_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = threading.Event()
    save = CheckpointFolder.save
    monkeypatch.setattr(CheckpointFolder, "save", lambda *args: may_write.wait() and save(*args))
    parts = Parts(CheckpointFolder(tmp_path), in_thread=True)
    checkpointing = parts.checkpointing
    checkpointing.ask()
    parts.send("first", 1)
    parts.send("second", 1)
    checkpointing.ask()
    parts.send("first", 2)
    may_write.set()
    while checkpointing.is_writing:
        checkpointing.poll()
    assert (checkpointing.written, checkpointing.asked) == (1, 2)


def test_file_is_written_when_every_policy_has_sent_its_part(tmp_path: Path) -> None:
    parts = Parts(CheckpointFolder(tmp_path))
    parts.checkpointing.ask()
    parts.send("first", 7)
    assert not parts.checkpointing.is_idle
    parts.send("second", 9)
    assert parts.checkpointing.is_idle
    assert parts.checkpointing.last is not None
    assert set(read_checkpoint(parts.checkpointing.last)["policies"]) == {"first", "second"}


def test_updates_of_the_file_are_those_of_the_first_policy_whichever_part_came_first(tmp_path: Path) -> None:
    parts = Parts(CheckpointFolder(tmp_path))
    parts.checkpointing.ask()
    parts.send("second", 9)
    parts.send("first", 7)
    assert parts.checkpointing.last_updates == 7
    assert read_checkpoint(tmp_path / "updates-000000007.h5")["meta"]["updates"] == 7


def test_lists_of_numbers_come_back_as_arrays_however_deep(tmp_path: Path) -> None:
    parts = Parts(CheckpointFolder(tmp_path))
    parts.checkpointing.ask()
    parts.send("first", 7)
    parts.send("second", 9)
    restored = read_checkpoint(tmp_path / "updates-000000007.h5")["meta"]
    assert restored["returns"].tolist() == [1.0, 2.0]
    assert restored["statistics"]["boxes"].tolist() == [3.0, 4.0]


def test_state_of_the_roles_goes_into_the_file(tmp_path: Path) -> None:
    parts = Parts(CheckpointFolder(tmp_path), actor={"x": 3})
    parts.checkpointing.ask()
    parts.send("first", 7)
    parts.send("second", 9)
    assert read_checkpoint(tmp_path / "updates-000000007.h5")["roles"]["actor"]["x"] == 3


class SlowFolder(CheckpointFolder):
    """Saves when it is let."""

    def __init__(self, path: Path, error: Exception | None = None) -> None:
        super().__init__(path)
        self.may_save = threading.Event()
        self._error = error

    def save(self, tree: Tree, updates: int, score: float | None = None, rule: Rule = "return_mean") -> Path:
        assert self.may_save.wait(30)
        if self._error is not None:
            raise self._error
        return super().save(tree, updates, score, rule)


def written(checkpointing: Checkpointing) -> None:
    while not checkpointing.is_idle:
        checkpointing.poll()


def test_polling_does_not_wait_while_the_file_is_written(tmp_path: Path) -> None:
    folder = SlowFolder(tmp_path)
    parts = Parts(folder, in_thread=True)
    parts.checkpointing.ask()
    parts.send("first", 7)
    parts.send("second", 9)
    assert parts.checkpointing.is_writing
    assert not parts.checkpointing.is_idle
    folder.may_save.set()
    written(parts.checkpointing)
    assert not parts.checkpointing.is_writing
    assert parts.checkpointing.last_updates == 7


def test_full_disk_is_a_problem_that_is_told(tmp_path: Path) -> None:
    folder = SlowFolder(tmp_path, OSError(28, "No space left on device"))
    folder.may_save.set()
    parts = Parts(folder, in_thread=True)
    parts.checkpointing.ask()
    parts.send("first", 7)
    parts.send("second", 9)
    written(parts.checkpointing)
    assert parts.checkpointing.problem is not None
    assert "No space left on device" in parts.checkpointing.problem


def test_bug_in_the_writing_thread_is_not_swallowed(tmp_path: Path) -> None:
    folder = SlowFolder(tmp_path, TypeError("no such leaf"))
    folder.may_save.set()
    parts = Parts(folder, in_thread=True)
    parts.checkpointing.ask()
    parts.send("first", 7)
    parts.send("second", 9)
    with pytest.raises(TypeError, match="no such leaf"):
        written(parts.checkpointing)


def test_part_of_several_chunks_comes_back_whole() -> None:
    sender, receiver = ends()
    array = np.random.default_rng(1).integers(0, 255, 3 * CHUNK_BYTES + 17, np.uint8)
    sender.begin(5, {"x": array})
    received = None
    while received is None:
        sender.poll()
        received = receiver.poll()
    number, tree = received
    assert number == 5
    np.testing.assert_array_equal(tree["x"], array)
    sender.poll()
    assert sender.is_idle


def test_slots_hold_a_part_whose_numbers_get_longer() -> None:
    exact = {"x": np.zeros(CHUNK_BYTES - 200, np.uint8), "steps": 1}
    assert slots_of(exact) == 2
    assert slots_of({"x": np.zeros(3)}) == 1


def test_part_may_change_while_it_is_sent() -> None:
    sender, receiver = ends()
    array = np.zeros(4)
    sender.begin(1, {"x": array})
    array[:] = 1
    sender.poll()
    received = receiver.poll()
    assert received is not None
    assert received[1]["x"].tolist() == [0, 0, 0, 0]


def test_part_that_outgrew_its_slots_waits_for_them_with_the_numbers_it_had() -> None:
    sender, receiver = ends(slots=2)
    array = np.arange(5 * CHUNK_BYTES // 8)
    sender.begin(1, {"x": array})
    expected, array[:] = array.copy(), 0
    received = None
    while received is None:
        assert not sender.is_idle
        received = receiver.poll()
        sender.poll()
    np.testing.assert_array_equal(received[1]["x"], expected)
    assert sender.is_idle


def test_sender_is_busy_until_everything_is_received() -> None:
    sender, receiver = ends()
    assert sender.is_idle
    sender.begin(1, {"x": 1})
    sender.poll()
    assert not sender.is_idle
    receiver.poll()
    assert sender.is_idle


SHARD = "replay-first-0"


def test_file_waits_for_the_parts_of_replay(tmp_path: Path) -> None:
    sender, receiver = ends(3)
    parts = Parts(CheckpointFolder(tmp_path), replay={"shards": {SHARD: receiver}})
    checkpointing = parts.checkpointing
    checkpointing.ask()
    parts.send("first", 7)
    parts.send("second", 9)
    assert not checkpointing.is_idle
    sender.begin(1, {"index": 0})
    checkpointing.poll()
    assert checkpointing.is_idle
    assert checkpointing.problem is None
    assert read_checkpoint(tmp_path / "updates-000000007.h5")["replay"] == {SHARD: {"index": 0}}


def test_replay_that_could_not_be_written_is_left_out_and_named(tmp_path: Path) -> None:
    sender, receiver = ends(3)
    parts = Parts(CheckpointFolder(tmp_path), replay={"shards": {SHARD: receiver}})
    checkpointing = parts.checkpointing
    for number, part_of_shard in ((1, {"problem": "the disk is full"}), (2, {"index": 0})):
        checkpointing.ask()
        parts.send("first", number)
        parts.send("second", number)
        sender.begin(number, part_of_shard)
        checkpointing.poll()
        assert checkpointing.is_idle
        if number == 1:
            assert checkpointing.problem == f"checkpoint at update 1 is without replay, of {SHARD}: the disk is full"
            assert "replay" not in read_checkpoint(tmp_path / "updates-000000001.h5")
    assert checkpointing.problem is None
    assert "replay" in read_checkpoint(tmp_path / "updates-000000002.h5")


def test_serial_checkpoint_whose_replay_cannot_be_written_is_not_written(tmp_path: Path) -> None:
    room: list[str] = []

    def shard_parts() -> dict[str, Any]:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return {SHARD: {"index": 0}}

    parts = Parts(CheckpointFolder(tmp_path), replay={"shard_parts": shard_parts})
    for number in (1, 2):
        parts.checkpointing.ask()
        parts.send("first", number)
        parts.send("second", number)
        if number == 1:
            assert parts.checkpointing.last is None
            assert "could not be written: the disk is full" in (parts.checkpointing.problem or "")
            room.append("now")
    assert read_checkpoint(tmp_path / "updates-000000002.h5")["replay"] == {SHARD: {"index": 0}}
    assert parts.checkpointing.problem is None


def test_files_of_blocks_that_no_checkpoint_names_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "replay"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"{SHARD}-{number:08d}.blocks").touch()
    named = segments_to_tree([Segment(f"{SHARD}-00000002.blocks", 0)])
    replay = {
        "shard_parts": lambda: {SHARD: {"segments": named}},
        "segments": SegmentFolder(folder, [SHARD]),
    }
    parts = Parts(CheckpointFolder(tmp_path / "checkpoints"), replay=replay)
    parts.checkpointing.ask()
    parts.send("first", 1)
    parts.send("second", 1)
    assert [path.name for path in folder.iterdir()] == [f"{SHARD}-00000002.blocks"]
