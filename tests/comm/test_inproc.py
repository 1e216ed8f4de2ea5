"""The state of links inside one process: what was sent and is not released goes on in other links."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from srlhpc.comm.channel import Flags, Header, Inbox, Link, Message, Outbox, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.data.layout import Field, Layout

LAYOUT = Layout.of([Field("number", (), "int64")])
RECEIVER = 9


class Links:
    """Three senders and an inbox: rows of one message, or a pool."""

    def __init__(self, pool: int | None) -> None:
        self.transport = InProcessTransport()
        links = [Link(Stream.BLOCKS, source, RECEIVER) for source in range(3)]
        self.outboxes: Sequence[Outbox] = [self.transport.outbox(link, LAYOUT, slots=3) for link in links]
        self.inbox: Inbox = self.transport.inbox(links, LAYOUT, pool=pool)

    def send(self, source: int, number: int) -> None:
        message = self.outboxes[source].acquire()
        assert message is not None
        message.fields["number"][...] = number
        self.outboxes[source].send(message)

    def take(self) -> list[Message]:
        """All that can be taken now."""
        self.inbox.poll()
        taken = []
        while (message := self.inbox.take()) is not None:
            taken.append(message)
        return taken

    def drain(self) -> list[tuple[int, int]]:
        """(sender, number) of all messages, each released at once."""
        found = []
        while messages := self.take():
            for message in messages:
                found.append((message.sender, int(message.fields["number"])))
                self.inbox.release(message)
        return found

    def resumed(self, pool: int | None) -> Links:
        other = Links(pool)
        other.transport.load_state(self.transport.save_state())
        return other


@pytest.mark.parametrize("pool", [None, 2])
def test_messages_under_way_arrive_in_the_same_order(pool: int | None) -> None:
    links = Links(pool)
    for source, number in ((2, 1), (0, 2), (2, 3), (1, 4)):
        links.send(source, number)
    other = links.resumed(pool)
    assert other.drain() == links.drain() != []


@pytest.mark.parametrize("pool", [None, 3])
def test_what_was_taken_and_not_released_can_be_taken_again_before_what_came_later(pool: int | None) -> None:
    links = Links(pool)
    links.send(2, 1)
    links.take()
    links.send(0, 2)
    (released,) = links.take()
    links.inbox.release(released)
    links.send(1, 3)
    links.take()
    links.send(0, 4)
    links.send(2, 5)
    other = links.resumed(pool)
    found = [(message.sender, int(message.fields["number"])) for message in other.take()]
    assert found[:3] == [(2, 1), (1, 3), (0, 4)]


@pytest.mark.parametrize("pool", [None, 2])
def test_sender_has_as_many_free_slots_as_before(pool: int | None) -> None:
    links = Links(pool)
    for number in range(3):
        links.send(0, number)
    links.inbox.poll()
    other = links.resumed(pool)
    free = 2 if pool else 1
    assert [other.outboxes[0].acquire() is not None for _ in range(3)] == [place < free for place in range(3)]


def test_links_that_carry_nothing_have_no_state_and_end_as_usual_after_a_load() -> None:
    links = Links(2)
    assert links.transport.save_state() == {}
    links.send(1, 7)
    other = links.resumed(2)
    for outbox in other.outboxes:
        outbox.send_last()
    assert other.drain() == [(1, 7)]
    assert other.inbox.is_finished


def test_state_is_a_copy() -> None:
    links = Links(2)
    links.send(0, 1)
    state = links.transport.save_state()
    links.drain()
    links.send(0, 2)
    other = Links(2)
    other.transport.load_state(state)
    (message,) = other.take()
    assert (int(message.fields["number"]), int(message.header[Header.FLAGS])) == (1, int(Flags.NONE))
