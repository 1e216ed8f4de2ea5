"""SharedRows in shared memory: what the conformance suite of channels cannot see."""

from __future__ import annotations

import numpy as np

from srlhpc.comm.channel import Flags, Header, Inbox, Link, Outbox, Stream
from srlhpc.comm.fence import Fence
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.node.rows import RowMemory, SharedOutbox, SharedRowInbox, SharedRows
from srlhpc.comm.node.transport import NodeTransport
from srlhpc.comm.transport import RankTransport
from srlhpc.data.layout import Field, Layout

LAYOUT = Layout.of([Field("x", (2,), "int64")])
LINKS = tuple(Link(Stream.REQUESTS, sender, 0, index) for sender, index in ((1, 0), (1, 1), (2, 0)))
SLOTS = 2


def memory_of(rows: SharedRows) -> RowMemory:
    buffer = np.zeros(RowMemory.size_bytes(rows) + 64, np.uint8)
    return RowMemory(rows, buffer[-buffer.ctypes.data % 64 :])


def node_fabric(links: tuple[Link, ...]) -> NodeTransport:
    rows = SharedRows(links, LAYOUT, SLOTS)
    buffer = np.zeros(RowMemory.size_bytes(rows) + 64, np.uint8)
    return NodeTransport([rows], buffer[-buffer.ctypes.data % 64 :], None)


def say(outbox: Outbox, number: int) -> None:
    message = outbox.acquire()
    assert message is not None
    message.fields["x"][:] = number
    outbox.send(message)


def heard(inbox: Inbox) -> list[tuple[int, int, int]]:
    """Slot, sender and number of what is there; released at once."""
    inbox.poll()
    found = []
    while (message := inbox.take()) is not None:
        found.append((message.slot, message.sender, int(message.fields["x"][0])))
        inbox.release(message)
    return found


def test_message_sent_before_the_inbox_was_made_is_received() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    say(SharedOutbox(memory, 1, None), 7)
    assert heard(SharedRowInbox(memory, None)) == [(1, 1, 7)]


def test_message_is_read_where_it_was_written() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    outbox, inbox = SharedOutbox(memory, 0, None), SharedRowInbox(memory, None)
    written = outbox.acquire()
    assert written is not None
    outbox.send(written)
    inbox.poll()
    read = inbox.take()
    assert read is not None
    assert np.shares_memory(written.buffer, read.buffer)


def test_slots_arrive_in_the_order_in_which_they_were_sent() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    outbox, inbox = SharedOutbox(memory, 0, None), SharedRowInbox(memory, None)
    for start in range(0, 20, 2):
        first, second = outbox.acquire(), outbox.acquire()
        assert first is not None
        assert second is not None
        for number, message in ((start, second), (start + 1, first)):
            message.fields["x"][:] = number
            outbox.send(message)
        assert [number for _, _, number in heard(inbox) + heard(inbox)] == [start, start + 1]


def test_message_is_announced_only_behind_the_fence() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    announced: list[int] = []
    fence: Fence = lambda: announced.append(memory.senders[0][0])  # noqa: E731
    outbox = SharedOutbox(memory, 0, fence)
    say(outbox, 1)
    say(outbox, 2)
    assert announced == [0, 1]


def test_message_is_read_only_behind_the_fence() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    landed: list[int] = []
    inbox = SharedRowInbox(memory, lambda: landed.append(memory.tails[0][0]))
    say(SharedOutbox(memory, 0, None), 1)
    inbox.poll()
    inbox.poll()
    assert landed == [0]


def test_buffer_is_written_again_only_behind_the_fence() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    fences: list[int] = []
    outbox, inbox = SharedOutbox(memory, 0, lambda: fences.append(1)), SharedRowInbox(memory, None)
    for number in range(SLOTS):
        say(outbox, number)
    said = len(fences)
    assert outbox.acquire() is None
    assert len(fences) == said
    heard(inbox)
    heard(inbox)
    assert outbox.acquire() is not None
    assert len(fences) == said + 1


def test_what_landed_of_a_forgotten_sender_is_taken_and_nothing_more() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    outboxes, inbox = [SharedOutbox(memory, place, None) for place in range(3)], SharedRowInbox(memory, None)
    for outbox in outboxes:
        say(outbox, 1)
    inbox.poll()
    inbox.forget(1)
    for outbox in outboxes:
        say(outbox, 2)
    assert heard(inbox) == [(0, 1, 1), (1, 1, 1), (2, 2, 1)]
    assert heard(inbox) == [(2, 2, 2)]


def test_links_of_two_ways_make_one_inbox_with_the_places_of_all() -> None:
    shared = (LINKS[0], LINKS[2])
    node, remote = node_fabric(shared), InProcessTransport()
    transport = RankTransport(0, {0: 0, 1: 1, 2: 2}, InProcessTransport(), remote, node)
    inbox = transport.inbox(LINKS, LAYOUT)
    outboxes = [
        node.outbox(link, LAYOUT, slots=SLOTS) if link in shared else remote.outbox(link, LAYOUT, slots=SLOTS)
        for link in LINKS
    ]
    for turn in range(3):
        for place, outbox in enumerate(outboxes):
            say(outbox, 10 * place + turn)
        assert sorted(heard(inbox)) == [(0, 1, turn), (1, 1, 10 + turn), (2, 2, 20 + turn)]
    assert not inbox.is_finished
    for outbox in outboxes[:2]:
        outbox.send_last()
    inbox.poll()
    inbox.forget(2)
    assert inbox.is_finished


def test_header_of_a_message_says_its_sender_and_no_flags() -> None:
    memory = memory_of(SharedRows(LINKS, LAYOUT, SLOTS))
    say(SharedOutbox(memory, 2, None), 1)
    inbox = SharedRowInbox(memory, None)
    inbox.poll()
    message = inbox.take()
    assert message is not None
    assert message.header[[Header.FLAGS, Header.SENDER]].tolist() == [Flags.NONE, 2]
