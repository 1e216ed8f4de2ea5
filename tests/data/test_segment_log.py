"""Blocks of a store are written while others come in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from srlhpc.data.block_store import BlockStore
from srlhpc.data.segment_log import SegmentLog
from srlhpc.data.segments import Run, read_runs
from srlhpc.specs.replay import UniformDraw
from tests.data.plain_store import Given, Setup, blocks
from tests.failing_disk import FailingDisk

LABEL, SLOTS, FILE_BLOCKS = "replay-a-0", 8, 2
COUNT = 40


class Kept:
    """A store of eight blocks that come in one by one, and the log of it."""

    def __init__(self, root: Path, *, in_thread: bool = False) -> None:
        setup = Setup(records=2, environments=1)
        self.store = BlockStore(
            setup.block,
            setup.window,
            slots=SLOTS,
            draw=UniformDraw(),
            generator=np.random.default_rng(0),
            first_priority=None,
        )
        self.folder = root / "replay"
        self.may_read = threading.Event()
        self.may_read.set()
        self.is_reading = threading.Event()
        self.log = SegmentLog(
            self.folder, LABEL, slots=SLOTS, file_blocks=FILE_BLOCKS, runs=self._runs, in_thread=in_thread
        )
        self.came = list(blocks(setup, [Given(0, True, seed=seed) for seed in range(COUNT)]))

    def _runs(self, first: int, end: int) -> Iterator[Run]:
        self.is_reading.set()
        self.may_read.wait()
        return self.store.runs(first, end)

    def add(self, count: int) -> None:
        for _ in range(count):
            self.log.make_room(self.store.inserted_blocks - SLOTS)
            self.store.add(self.came[self.store.inserted_blocks])
            self.log.added(self.store.inserted_blocks)

    def checkpoint(self) -> list[int] | None:
        """Numbers of the blocks that the files hold after all is written; each is as it came."""
        while not self.log.is_idle:
            pass
        self.log.write(self.store.inserted_blocks)
        while not self.log.is_idle:
            pass
        named = self.log.named(self.store.inserted_blocks)
        if named is None:
            return None
        found = []
        for segment in named:
            for run in read_runs(self.folder, segment):
                for place in range(len(run.group)):
                    number = run.first + place
                    found.append(number)
                    np.testing.assert_array_equal(run.fields["obs.x"][place], self.came[number].fields["obs.x"])
        return found

    @property
    def files(self) -> int:
        return len(list(self.folder.iterdir()))


@pytest.mark.parametrize("in_thread", [False, True])
def test_files_hold_all_that_the_store_has(tmp_path: Path, in_thread: bool) -> None:
    kept = Kept(tmp_path, in_thread=in_thread)
    assert kept.checkpoint() == []
    for count in (1, 1, 3, 7, 2, 5):
        kept.add(count)
        found = kept.checkpoint()
        assert found is not None
        oldest = max(0, kept.store.inserted_blocks - SLOTS)
        assert found[-1] == kept.store.inserted_blocks - 1
        assert oldest - FILE_BLOCKS < found[0] <= oldest
        assert found == list(range(found[0], found[-1] + 1))


def test_every_block_is_written_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for count in (1, 1, 3, 7, 2, 5):
        kept.add(count)
        kept.checkpoint()
        kept.checkpoint()
    held = [run for path in sorted(kept.folder.iterdir()) for run in _all_runs(kept, path)]
    assert held == list(range(19))
    assert kept.log.written_bytes == sum(path.stat().st_size for path in kept.folder.iterdir())


def _all_runs(kept: Kept, path: Path) -> Iterator[int]:
    """Numbers of the blocks of a file, by what they hold."""
    data = path.read_bytes()
    for number, block in enumerate(kept.came):
        if block.fields["obs.x"].tobytes() in data:
            yield number


def test_file_is_full_before_the_next_one_begins(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.add(1)
    kept.checkpoint()
    kept.add(3)
    kept.checkpoint()
    assert kept.files == 2


def test_block_that_is_being_written_is_not_overwritten(tmp_path: Path) -> None:
    kept = Kept(tmp_path, in_thread=True)
    kept.may_read.clear()
    kept.add(SLOTS)
    assert kept.is_reading.wait(60)
    adding = threading.Thread(target=kept.add, args=(1,))
    adding.start()
    adding.join(0.2)
    assert adding.is_alive()
    kept.may_read.set()
    adding.join(60)
    assert not adding.is_alive()
    assert kept.store.inserted_blocks == SLOTS + 1
    found = kept.checkpoint()
    assert found is not None
    assert {1, SLOTS} <= set(found)


def test_full_disk_is_a_problem_until_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, kept = FailingDisk(monkeypatch), Kept(tmp_path)
    kept.add(3)
    assert kept.checkpoint() is not None
    disk.fill(lambda path: path.endswith(".blocks"))
    kept.add(4)
    assert kept.checkpoint() is None
    assert "the disk is full" in (kept.log.problem or "")
    with pytest.raises(OSError, match="No space left"):
        kept.log.require_written()
    disk.heal()
    assert (kept.checkpoint() or [])[-1] == 6
    assert kept.log.problem is None
    kept.log.require_written()


def test_blocks_that_were_lost_to_a_full_disk_are_missed_only_while_the_store_would_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, kept = FailingDisk(monkeypatch), Kept(tmp_path)
    kept.add(3)
    disk.fill(lambda path: path.endswith(".blocks"))
    # Eight more than the store has room for: what it has now was never written.
    kept.add(13)
    disk.heal()
    assert kept.checkpoint() == list(range(8, 16))


def test_full_disk_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk, kept = FailingDisk(monkeypatch), Kept(tmp_path)
    kept.add(1)
    disk.fill()
    kept.add(6)
    assert kept.checkpoint() is None
    assert caplog.text.count("blocks of replay-a-0 could not be written") == 1


def test_store_that_was_kept_goes_on_in_files_of_its_own(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.add(5)
    kept.checkpoint()
    named = kept.log.named(5)
    assert named is not None
    size = (kept.folder / named[-1].name).stat().st_size
    again = SegmentLog(kept.folder, LABEL, slots=SLOTS, file_blocks=FILE_BLOCKS, runs=kept.store.runs, in_thread=False)
    again.go_on(named, 5)
    kept.log = again
    kept.add(1)
    assert kept.checkpoint() == list(range(6))
    assert (kept.folder / named[-1].name).stat().st_size == size


def test_other_errors_are_raised(tmp_path: Path) -> None:
    def broken(_first: int, _end: int) -> Iterator[Run]:
        raise RuntimeError("broken")

    log = SegmentLog(tmp_path / "replay", LABEL, slots=SLOTS, file_blocks=1, runs=broken, in_thread=True)
    log.write(1)
    with pytest.raises(RuntimeError, match="broken"):
        log.close()
