"""The replay rank between its actors and its trainer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.protocol import Command
from srlhpc.data.windows import SLOT, WindowHeader
from srlhpc.errors import ClusterError
from tests.roles.replaying.replay_setup import BLOCK, COLUMNS, Replaying


def test_windows_are_drawn_when_there_is_room_for_them() -> None:
    replay = Replaying()
    replay.fill()
    assert replay.drawn() is None
    replay.want(2)
    for number in range(2):
        message = replay.drawn()
        assert message is not None
        assert message.header[WindowHeader.SEQUENCE] == number
        replay.windows.release(message)
        replay.poll()
    assert replay.drawn() is None
    assert replay.counter("records_drawn") == 2 * COLUMNS


def test_windows_wait_until_enough_steps_came_in_and_say_how_many() -> None:
    replay = Replaying(start_steps=2 * BLOCK)
    replay.want()
    replay.fill()
    assert replay.drawn() is None
    assert replay.role.waits_for() == f"waits for blocks: {BLOCK} of {2 * BLOCK} steps came in"
    replay.fill()
    message = replay.drawn()
    assert message is not None
    assert message.header[WindowHeader.INSERTED_STEPS] == message.header[WindowHeader.INSERTED_VALID] == 2 * BLOCK


def test_groups_wait_while_they_are_ahead_and_get_leave_when_more_was_drawn() -> None:
    replay = Replaying(tolerance=16.0)
    replay.fill(2)
    replay.ask(0)
    replay.ask(1)
    assert replay.granted() == []
    replay.want()
    assert replay.granted() == [0]
    assert replay.role.waits_for() == "waits for its trainer, which has all it wanted, and has 1 request for grants"


def test_trainer_waits_while_it_is_ahead_and_gets_windows_when_a_block_is_granted() -> None:
    replay = Replaying(tolerance=8.0)
    replay.fill()
    replay.want(4)
    taken = 0
    while (message := replay.drawn()) is not None:
        replay.windows.release(message)
        replay.poll()
        taken += 1
    assert taken == 2
    assert replay.role.waits_for() == "waits for blocks: replay.samples_per_insert allows no draw before"
    replay.ask(1)
    assert replay.granted() == [1]
    assert replay.drawn() is not None


def test_block_that_is_granted_counts_until_its_actor_is_dead() -> None:
    replay = Replaying(tolerance=16.0)
    replay.fill()
    replay.ask(1)
    assert replay.granted() == [1]
    replay.ask(0)
    assert replay.granted() == []
    replay.role.forget([1])
    replay.poll()
    assert replay.granted() == [0]


def test_nothing_that_can_be_drawn_gives_leave_whatever_the_tolerance() -> None:
    replay = Replaying(tolerance=8.0)
    for _ in range(5):
        replay.ask(0)
        assert replay.granted() == [0]
        replay.send(0, valid=False)
    assert replay.role.waits_for() == "waits for blocks: none of its windows is whole yet (5 blocks)"


def test_group_that_must_not_wait_gets_leave_at_once() -> None:
    replay = Replaying(tolerance=8.0)
    replay.fill()
    replay.ask(0)
    assert replay.granted() == []
    replay.ask(1, Holding.LATER)
    assert replay.granted() == [1]


def test_relief_gives_leave_to_all() -> None:
    replay = Replaying(tolerance=8.0)
    replay.fill()
    replay.ask(0)
    replay.ask(1)
    assert replay.granted() == []
    replay.role.obey(Command(relief=1))
    assert replay.granted() == [0, 1]


def test_priorities_are_taken_in_before_the_next_draw() -> None:
    replay = Replaying()
    replay.fill(2)
    replay.want()
    message = replay.drawn()
    assert message is not None
    seen = set(message.fields[SLOT].tolist())
    replay.want(1, message, priority=0.0)
    replay.windows.release(message)
    replay.poll()
    later = replay.drawn()
    assert later is not None
    assert seen.isdisjoint(later.fields[SLOT].tolist())


def test_priorities_of_overwritten_records_are_dropped_and_counted() -> None:
    replay = Replaying()
    replay.fill()
    replay.want()
    message = replay.drawn()
    assert message is not None
    replay.fill(6)
    replay.want(1, message, priority=5.0)
    assert replay.counter("dropped_priorities") == COLUMNS


def test_what_is_older_than_it_may_be_is_not_drawn_and_gives_leave_to_act() -> None:
    replay = Replaying(max_age=10, tolerance=8.0)
    replay.fill()
    replay.want(version=10)
    message = replay.drawn()
    assert message is not None
    replay.windows.release(message)
    replay.want(version=11)
    assert replay.drawn() is None
    assert replay.counter("too_old") == 1
    assert replay.role.waits_for() == "waits for blocks: no window is whole and young enough (1 block, 1 too old)"
    replay.fill()


def test_end_drops_what_comes_and_says_last_when_all_have() -> None:
    replay = Replaying()
    replay.fill()
    replay.stop()
    replay.send(0)
    replay.want(3)
    assert replay.drawn() is None
    assert replay.counter("blocks") == 1
    for outbox in (*replay.blocks, replay.draws):
        assert not replay.windows.is_finished
        assert outbox.send_last()
        replay.poll()
        replay.windows.poll()
    assert replay.windows.is_finished
    replay.poll()
    assert replay.role.is_done
    assert replay.role.waits_for() == ""


def test_end_does_not_wait_for_a_dead_actor() -> None:
    replay = Replaying()
    replay.stop()
    assert replay.blocks[0].send_last()
    assert replay.draws.send_last()
    replay.poll()
    replay.role.forget([1])
    replay.poll()
    replay.windows.poll()
    assert replay.windows.is_finished


def test_rank_whose_actors_are_all_dead_ends_the_step() -> None:
    replay = Replaying()
    replay.role.forget([0])
    replay.role.obey(Command())
    replay.role.forget([1])
    with pytest.raises(ClusterError, match="every actor that feeds replay-default-0 is dead"):
        replay.role.obey(Command())


def test_states_hold_the_store_the_rate_and_what_the_trainer_has_room_for(tmp_path: Path) -> None:
    replay, other = (Replaying(start_steps=1.0, folder=tmp_path / "replay", serial=True) for _ in range(2))
    replay.want(2)
    replay.fill(3)
    message = replay.drawn()
    assert message is not None
    replay.windows.release(message)
    state = replay.state()
    other.transport.load_state(state["links"])
    other.role.load_state(state["role"])
    other.role.load_shard(replay.role.shard_part())
    replay.poll()
    other.poll()
    one, same = replay.drawn(), other.drawn()
    assert one is not None
    assert same is not None
    assert np.array_equal(one.buffer, same.buffer)
    for name in ("records_inserted", "records_drawn", "drawable", "blocks"):
        assert replay.counter(name) == other.counter(name)


@pytest.mark.parametrize(("part", "credit", "blocks"), [("slot", 0, 1), ("others", 9, 1), ("input", 0, 0)])
def test_seconds_count_for_whom_the_rate_makes_wait(part: str, credit: int, blocks: int) -> None:
    now = [0.0]
    replay = Replaying(tolerance=8.0, clock=lambda: now[0])
    replay.fill(blocks)
    if credit:
        replay.want(credit)
        for _ in range(2):
            message = replay.drawn()
            assert message is not None
            replay.windows.release(message)
            replay.poll()
    elif blocks:
        replay.ask(0)
    now[0] = 5.0
    replay.poll(1)
    assert replay.counter(f"{part}_seconds") == 5.0
