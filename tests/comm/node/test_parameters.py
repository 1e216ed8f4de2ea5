"""One pull per node: the leader, its memory, its successors."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.comm.node.parameters import VECTORS, NodeMemory, SharedSubscription, Stamp, Succession
from srlhpc.comm.parameters import NO_VERSION, ParameterSubscription, Vector
from tests.comm.launching import run_ranks

SIZE = 20
MEMBERS = 3
PATIENCE_SECONDS = 5.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Upstream(ParameterSubscription):
    """What a test says has arrived, and how often it was asked for."""

    def __init__(self) -> None:
        self.arrived = self.taken = NO_VERSION
        self.polls = 0

    def poll(self) -> bool:
        self.polls += 1
        moved, self.taken = self.taken != self.arrived, self.arrived
        return moved

    @property
    def version(self) -> int:
        return self.taken

    @property
    def steps(self) -> int:
        return stamp(self.taken).steps

    @property
    def vector(self) -> Vector:
        return np.full(SIZE, self.taken, np.float32)

    def close(self) -> None:
        pass


class Node:
    """Three members over plain memory, with one clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.memory = plain_memory()
        self.upstreams = [Upstream() for _ in range(MEMBERS)]
        self.members = [
            SharedSubscription(
                self.memory, place, upstream, SIZE, Succession(place, MEMBERS, PATIENCE_SECONDS, self.clock)
            )
            for place, upstream in enumerate(self.upstreams)
        ]

    def live(self, *places: int, seconds: float = 2 * PATIENCE_SECONDS) -> None:
        """Only these members poll, once a second."""
        for _ in range(int(seconds)):
            self.clock.now += 1.0
            for place in places:
                self.members[place].poll()

    def arrive(self, version: int) -> None:
        for upstream in self.upstreams:
            upstream.arrived = version


def stamp(version: int) -> Stamp:
    """Trained steps that tell which version they are of."""
    return Stamp(version, 100 * version)


def plain_memory() -> NodeMemory:
    buffer = np.zeros(NodeMemory.size_bytes(MEMBERS, SIZE), np.uint8)
    return NodeMemory(buffer, MEMBERS, SIZE, None)


def test_only_the_leader_asks_and_all_members_get_it() -> None:
    node = Node()
    node.arrive(3)
    node.live(0, 1, 2)
    assert [upstream.polls > 0 for upstream in node.upstreams] == [True, False, False]
    assert [member.version for member in node.members] == [3, 3, 3]
    assert [member.steps for member in node.members] == [300, 300, 300]
    assert node.members[2].vector.tolist() == [3.0] * SIZE


def test_next_living_member_leads_when_the_leader_is_silent_for_too_long() -> None:
    node = Node()
    node.live(0, 1, 2)
    node.live(2, seconds=PATIENCE_SECONDS)
    assert node.memory.leader == 0
    node.arrive(4)
    node.live(2)
    assert node.memory.leader == 2
    assert node.members[2].version == 4


def test_member_after_the_leader_leads_even_if_lower_places_live() -> None:
    node = Node()
    node.live(0, 1, 2)
    node.memory.leader = 1
    node.live(0, 2)
    assert node.memory.leader == 2


def test_leader_that_closes_is_succeeded_at_once() -> None:
    node = Node()
    node.live(0, 1, 2)
    node.members[0].close()
    node.live(1, 2, seconds=1)
    assert node.memory.leader == 1


def test_leader_that_wakes_up_late_follows_its_successor() -> None:
    node = Node()
    node.live(0, 1, 2)
    node.live(1, 2)
    assert node.memory.leader == 1
    polls = node.upstreams[0].polls
    node.arrive(6)
    node.live(0, 1, 2)
    assert node.upstreams[0].polls == polls
    assert node.members[0].version == 6


def test_successor_that_gets_what_is_known_already_changes_nothing() -> None:
    node = Node()
    node.arrive(3)
    node.live(0, 1, 2)
    node.live(1)
    assert node.upstreams[1].version == 3
    assert not node.members[1].poll()
    node.arrive(5)
    assert node.members[1].poll()
    assert node.members[1].version == 5


def test_vector_of_a_follower_stays_until_its_next_poll() -> None:
    node = Node()
    node.arrive(1)
    node.live(0, 1)
    vector = node.members[1].vector
    node.arrive(2)
    node.live(0)
    node.arrive(3)
    node.live(0)
    assert vector.tolist() == [1.0] * SIZE


def test_reader_refuses_a_vector_that_changes_while_it_is_read() -> None:
    buffer = np.zeros(NodeMemory.size_bytes(MEMBERS, SIZE), np.uint8)
    writer = NodeMemory(buffer, MEMBERS, SIZE, lambda: None)
    writer.write(stamp(1), np.ones(SIZE, np.float32))
    fences = 0

    def overtake() -> None:
        nonlocal fences
        fences += 1
        if fences == 2:
            writer.write(stamp(2), np.full(SIZE, 2, np.float32))
            writer.write(stamp(3), np.full(SIZE, 3, np.float32))

    reader, out = NodeMemory(buffer, MEMBERS, SIZE, overtake), np.zeros(SIZE, np.float32)
    assert reader.read(NO_VERSION, out) is None
    assert reader.read(NO_VERSION, out) == stamp(3)
    assert out.tolist() == [3.0] * SIZE


class WeakMemory:
    """What two processors of weak order may see of each other's writes.

    Numbers (sequences and versions, before the vectors) are seen early and vectors late, or the other way round; a
    fence brings everything.
    """

    def __init__(self, *, numbers_first: bool) -> None:
        self.shared = np.zeros(NodeMemory.size_bytes(MEMBERS, SIZE), np.uint8)
        line = 16  # numbers of a line of the processor's cache, whole ones of which each vector has
        head = len(self.shared) - VECTORS * -(-SIZE // line) * line * 4
        self._early = slice(None, head) if numbers_first else slice(head, None)

    def reader(self, meanwhile: Callable[[], None]) -> NodeMemory:
        """What it loads is as of its last fence, but for the early part; after each fence the others go on."""
        seen = self.shared.copy()

        def fence() -> None:
            seen[:] = self.shared
            meanwhile()
            seen[self._early] = self.shared[self._early]

        return NodeMemory(seen, MEMBERS, SIZE, fence)

    def writer(self, meanwhile: Callable[[], None]) -> NodeMemory:
        """What it stores is there at its next fence, the early part a little before; the others look between both."""
        stored = self.shared.copy()

        def fence() -> None:
            self.shared[self._early] = stored[self._early]
            meanwhile()
            self.shared[:] = stored
            meanwhile()

        return NodeMemory(stored, MEMBERS, SIZE, fence)


def whole(version: int) -> Vector:
    return np.full(SIZE, version, np.float32)


@pytest.mark.parametrize("numbers_first", [True, False], ids=["numbers first", "vectors first"])
@pytest.mark.parametrize("at", [1, 2])
def test_reader_takes_no_old_vector_for_a_new_one_on_weak_memory(at: int, numbers_first: bool) -> None:
    memory = WeakMemory(numbers_first=numbers_first)
    writer = NodeMemory(memory.shared, MEMBERS, SIZE, None)
    writer.write(stamp(1), whole(1))
    writer.write(stamp(2), whole(2))
    fences = 0

    def meanwhile() -> None:
        nonlocal fences
        fences += 1
        if fences == at:
            writer.write(stamp(3), whole(3))

    reader, out = memory.reader(meanwhile), np.zeros(SIZE, np.float32)
    reader.fence()
    for _ in range(3):
        found = reader.read(NO_VERSION, out)
        assert found is None or (out.tolist(), found) == ([found.version] * SIZE, stamp(found.version))
    assert found == stamp(3)


@pytest.mark.parametrize("numbers_first", [True, False], ids=["numbers first", "vectors first"])
def test_writer_shows_no_vector_before_it_is_whole_on_weak_memory(numbers_first: bool) -> None:
    memory = WeakMemory(numbers_first=numbers_first)
    seen: list[int] = []

    def look() -> None:
        out = np.zeros(SIZE, np.float32)
        found = NodeMemory(memory.shared, MEMBERS, SIZE, None).read(NO_VERSION, out)
        if found is not None:
            assert out.tolist() == [found.version] * SIZE
            assert found == stamp(found.version)
            seen.append(found.version)

    writer = memory.writer(look)
    for version in range(1, 6):
        writer.write(stamp(version), whole(version))
        writer.fence()
    assert seen == sorted(seen)
    assert seen[-1] == 5


class Killed(Exception):
    """Stands for a leader's death at its n-th fence."""


class Late:
    """Where a reader copies its vector to, after others have gone on."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile
        self.vector = np.zeros(SIZE, np.float32)

    def __setitem__(self, part: slice, vector: Vector) -> None:
        self._meanwhile()
        self.vector[part] = vector


@pytest.mark.parametrize("numbers_first", [True, False], ids=["numbers first", "vectors first"])
@pytest.mark.parametrize("moments", range(5))
def test_reader_sees_that_its_vector_is_overwritten_on_weak_memory(moments: int, numbers_first: bool) -> None:
    memory = WeakMemory(numbers_first=numbers_first)
    strong = NodeMemory(memory.shared, MEMBERS, SIZE, None)
    for version in (1, 2, 3):
        strong.write(stamp(version), whole(version))
    left = moments

    def stop() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    def overtake() -> None:
        strong.write(stamp(4), whole(4))
        with suppress(Killed):
            memory.writer(stop).write(stamp(5), whole(5))

    out: Any = Late(overtake)
    found = strong.read(NO_VERSION, out)
    assert found is None or (out.vector.tolist(), found) == ([found.version] * SIZE, stamp(found.version))


def test_vector_left_half_written_is_never_read_nor_in_the_way() -> None:
    buffer = np.zeros(NodeMemory.size_bytes(MEMBERS, SIZE), np.uint8)
    fences = 0

    def die_at_the_first() -> None:
        nonlocal fences
        fences += 1
        raise Killed

    whole = NodeMemory(buffer, MEMBERS, SIZE, lambda: None)
    out = np.zeros(SIZE, np.float32)
    whole.write(stamp(1), np.ones(SIZE, np.float32))
    for _ in range(2):
        with pytest.raises(Killed):
            NodeMemory(buffer, MEMBERS, SIZE, die_at_the_first).write(stamp(9), np.full(SIZE, 9, np.float32))
    assert fences == 2
    for version in (10, 11, 12):
        whole.write(stamp(version), np.full(SIZE, version, np.float32))
        assert whole.read(NO_VERSION, out) == stamp(version)
        assert out.tolist() == [float(version)] * SIZE


def test_empty_memory_has_nothing_to_read() -> None:
    assert plain_memory().read(NO_VERSION, np.zeros(SIZE, np.float32)) is None


@pytest.mark.mpi
def test_killed_leader_is_succeeded_by_the_other_rank_of_its_node(tmp_path: Path) -> None:
    run_ranks(3, "tests.comm.mpi_succession", str(tmp_path), survive=True)
    leader, follower = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (1, 2))
    assert leader["led"]
    assert leader["versions"][-1] >= 5
    assert follower["versions"] == sorted(set(follower["versions"]))
    assert follower["versions"][-1] == 30
    assert not follower["torn"]
    assert follower["led"]
    assert follower["versions"][0] < 10, "before the succession it read what the leader had pulled"
