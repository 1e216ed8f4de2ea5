"""Small plays for three roles, 0 the receiver and 1 and 2 the senders, that run over any transport.

A role is a generator that yields whenever it waits; what it returns must be JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from srlhpc.comm.channel import Inbox, Link, Message, Outbox, Stream, Transport
from srlhpc.comm.parameters import (
    PULL_LAYOUT,
    SUBSCRIPTION_SLOTS,
    LinkSubscription,
    ParameterSource,
    parameter_layout,
)
from srlhpc.data.layout import HEADER_BYTES, Field, Layout

Role = Generator[None, None, Any]
Play = Callable[[Transport, int], Role]

RECEIVER, SENDERS = 0, (1, 2)
NUMBER = 2
"""Place in the header that these plays count in."""
SMALL = Layout.of([Field("values", (4,), "int64"), Field("more", (3, 5), "float32")])
WIDE = Layout.of([Field("values", (1 << 17,), "int64")])
LARGE = Layout.of([Field("values", (1 << 23,), "int64")])


def links(stream: Stream = Stream.BLOCKS) -> list[Link]:
    return [Link(stream, sender, RECEIVER) for sender in SENDERS]


def free_slot(outbox: Outbox) -> Generator[None, None, Message]:
    while (message := outbox.acquire()) is None:
        outbox.poll()
        yield
    return message


def say_last(outbox: Outbox) -> Role:
    while not outbox.send_last():
        outbox.poll()
        yield
    while not outbox.is_drained:
        outbox.poll()
        yield


def next_message(inbox: Inbox) -> Generator[None, None, Message]:
    while (message := inbox.take()) is None:
        inbox.poll()
        yield
    return message


def drain(inbox: Inbox) -> int:
    """Receives and releases what is there; how many messages."""
    inbox.poll()
    count = 0
    while (message := inbox.take()) is not None:
        inbox.release(message)
        count += 1
    return count


def numbers_by_sender(inbox: Inbox) -> Generator[None, None, dict[str, list[int]]]:
    """Receives until the end and releases at once."""
    numbers: dict[str, list[int]] = {str(sender): [] for sender in SENDERS}
    while not inbox.is_finished:
        inbox.poll()
        while (message := inbox.take()) is not None:
            numbers[str(message.sender)].append(int(message.header[NUMBER]))
            inbox.release(message)
        yield
    inbox.close()
    return numbers


def order(layout: Layout, pool: int | None, count: int = 60) -> Play:
    """Full and short messages in turn; the receiver starts late."""

    def play(transport: Transport, address: int) -> Role:
        if address == RECEIVER:
            for _ in range(20):
                yield
            return (yield from numbers_by_sender(transport.inbox(links(), layout, pool=pool)))
        outbox = transport.outbox(links()[address - 1], layout, slots=3)
        for number in range(count):
            message = yield from free_slot(outbox)
            message.header[NUMBER] = number
            outbox.send(message, HEADER_BYTES if number % 3 == 1 else None)
        return (yield from say_last(outbox))

    return play


def content(layout: Layout, pool: int | None) -> Play:
    """One message each, with numbers that depend on the sender; the receiver tells the sums."""

    def play(transport: Transport, address: int) -> Role:
        if address != RECEIVER:
            outbox = transport.outbox(links()[address - 1], layout, slots=1)
            message = yield from free_slot(outbox)
            values = message.fields["values"]
            values[:] = np.arange(values.size) * address
            outbox.send(message)
            return (yield from say_last(outbox))
        inbox, right = transport.inbox(links(), layout, pool=pool), {}
        while not inbox.is_finished:
            inbox.poll()
            while (message := inbox.take()) is not None:
                values = message.fields["values"]
                right[str(message.sender)] = bool((values == np.arange(values.size) * message.sender).all())
                inbox.release(message)
            yield
        return right

    return play


class Backpressure:
    """The receiver keeps the first message until the sender has told how many it could send."""

    FORTH, BACK, TOLD = (
        Link(Stream.BLOCKS, 1, RECEIVER),
        Link(Stream.REPLIES, RECEIVER, 1),
        Link(Stream.REPORTS, 1, RECEIVER),
    )
    PATIENCE_POLLS = 200

    def __init__(self, layout: Layout, pool: int | None) -> None:
        self._layout = layout
        self._pool = pool

    def __call__(self, transport: Transport, address: int) -> Role:
        return (self._receive(transport), self._send(transport), iter_nothing())[address]

    def _send(self, transport: Transport) -> Role:
        outbox, go = transport.outbox(self.FORTH, self._layout, slots=2), transport.inbox([self.BACK], SMALL)
        sent = patience = 0
        while patience < self.PATIENCE_POLLS:
            patience += drain(go) or patience > 0
            outbox.poll()
            if (message := outbox.acquire()) is not None:
                outbox.send(message)
                sent += 1
            yield
        told = transport.outbox(self.TOLD, SMALL, slots=1)
        told.send((yield from free_slot(told)))
        yield from say_last(outbox)
        return sent

    def _receive(self, transport: Transport) -> Role:
        inbox = transport.inbox([self.FORTH], self._layout, pool=self._pool)
        go, told = transport.outbox(self.BACK, SMALL, slots=1), transport.inbox([self.TOLD], SMALL)
        first = yield from next_message(inbox)
        go.send((yield from free_slot(go)))
        while not told.poll():
            inbox.poll()
            go.poll()
            yield
        inbox.release(first)
        received = 1
        while not inbox.is_finished:
            received += drain(inbox)
            yield
        return received


def iter_nothing() -> Role:
    yield


def ending(transport: Transport, address: int) -> Role:
    """Sender 1 has nothing to say; sender 2 says one message, and LAST twice."""
    if address == RECEIVER:
        inbox = transport.inbox(links(), SMALL)
        message = yield from next_message(inbox)
        before = inbox.is_finished
        inbox.release(message)
        while not inbox.is_finished:
            inbox.poll()
            yield
        inbox.close()
        return [message.sender, before, inbox.take() is None]
    outbox = transport.outbox(links()[address - 1], SMALL, slots=1)
    if address == 2:
        outbox.send((yield from free_slot(outbox)))
    yield from say_last(outbox)
    return [outbox.send_last(), outbox.is_drained]


def forgetting(pool: int | None) -> Play:
    """Sender 2 says one message and never LAST; the receiver tells whether it was finished before it forgot it."""

    def play(transport: Transport, address: int) -> Role:
        if address != RECEIVER:
            outbox = transport.outbox(links()[address - 1], SMALL, slots=1)
            outbox.send((yield from free_slot(outbox)))
            while not outbox.is_drained:
                outbox.poll()
                yield
            return (yield from say_last(outbox)) if address == 1 else None
        inbox, received = transport.inbox(links(), SMALL, pool=pool), 0
        for patience in range(10_000):
            received += drain(inbox)
            if received == len(SENDERS) and patience > 200:
                break
            yield
        before = inbox.is_finished
        inbox.forget(2)
        while not inbox.is_finished:
            drain(inbox)
            yield
        inbox.close()
        return before

    return play


def holding(pool: int | None) -> Play:
    """The receiver keeps both first messages while it waits, and looks at them again at the end."""

    def play(transport: Transport, address: int) -> Role:
        if address != RECEIVER:
            outbox = transport.outbox(links()[address - 1], SMALL, slots=3)
            for number in range(3):
                message = yield from free_slot(outbox)
                message.fields["values"][:] = 10 * address + number
                outbox.send(message)
            return (yield from say_last(outbox))
        inbox = transport.inbox(links(), SMALL, pool=pool)
        held = [(yield from next_message(inbox)), (yield from next_message(inbox))]
        expected = [message.fields["values"].tolist() for message in held]
        for _ in range(200):
            inbox.poll()
            yield
        unchanged = [message.fields["values"].tolist() for message in held] == expected
        for message in held:
            inbox.release(message)
        numbers = yield from numbers_by_sender(inbox)
        return [unchanged, sum(map(len, numbers.values()))]

    return play


def places(transport: Transport, address: int) -> Role:
    """Two links from each sender; the slot of a message is the place of its link."""
    ways = [Link(Stream.REQUESTS, sender, RECEIVER, index) for sender in SENDERS for index in (0, 7)]
    if address == RECEIVER:
        inbox, found = transport.inbox(ways, SMALL), {}
        for _ in ways:
            message = yield from next_message(inbox)
            found[str(message.slot)] = int(message.header[NUMBER])
        return found
    outboxes = [transport.outbox(way, SMALL, slots=1) for way in ways if way.source == address]
    for place, outbox in enumerate(outboxes):
        message = yield from free_slot(outbox)
        message.header[NUMBER] = 2 * (address - 1) + place
        outbox.send(message)
    while not all(outbox.is_drained for outbox in outboxes):
        for outbox in outboxes:
            outbox.poll()
        yield
    return None


def abandoning(transport: Transport, address: int) -> Role:
    """Nobody receives; the sender gives up."""
    if address != 1:
        return None
    outbox = transport.outbox(links()[0], WIDE, slots=2)
    for _ in range(2):
        outbox.send((yield from free_slot(outbox)))
    for _ in range(50):
        outbox.poll()
        yield
    before = [outbox.acquire() is None, outbox.is_drained]
    outbox.abandon()
    return [before, outbox.acquire() is None, outbox.is_drained, outbox.send_last()]


def parameters(transport: Transport, address: int) -> Role:
    """The source publishes 20 versions of a constant vector; both subscribers tell what they saw."""
    size, last = 1000, 19
    pulls, answers = links(Stream.PULLS), [Link(Stream.PARAMETERS, RECEIVER, s) for s in SENDERS]
    layout = parameter_layout(size)
    if address == RECEIVER:
        ways = {link.destination: transport.outbox(link, layout, slots=1) for link in answers}
        source = ParameterSource(size, [transport.inbox(pulls, PULL_LAYOUT)], ways)
        for version in range(last + 1):
            source.publish(version, lambda vector, version=version: vector.fill(version))
            for _ in range(5):
                source.poll()
                yield
        done = transport.inbox(links(Stream.REPORTS), SMALL)
        while not done.is_finished:
            source.poll()
            done.poll()
            yield
        return None
    subscription = LinkSubscription(
        size,
        transport.outbox(pulls[address - 1], PULL_LAYOUT, slots=1),
        transport.inbox([answers[address - 1]], layout, pool=SUBSCRIPTION_SLOTS),
    )
    seen = []
    while subscription.version < last:
        if subscription.poll():
            assert (subscription.vector == subscription.version).all()
            seen.append(subscription.version)
        yield
    yield from say_last(transport.outbox(links(Stream.REPORTS)[address - 1], SMALL, slots=1))
    return seen


PLAYS: dict[str, Play] = {
    "order-rows": order(WIDE, None),
    "order-pool": order(WIDE, 4),
    "order-small-rows": order(SMALL, None),
    "order-small-pool": order(SMALL, 3),
    "large-rows": content(LARGE, None),
    "large-pool": content(LARGE, 2),
    "backpressure-small": Backpressure(SMALL, None),
    "backpressure-wide": Backpressure(WIDE, 1),
    "ending": ending,
    "forgetting-rows": forgetting(None),
    "forgetting-pool": forgetting(3),
    "holding-rows": holding(None),
    "holding-pool": holding(2),
    "places": places,
    "abandoning": abandoning,
    "parameters": parameters,
}


def run_in_process(play: Play, transport: Transport, rounds: int = 100_000) -> dict[int, Any]:
    """All roles in turn, until all have ended; what each returned."""
    roles = {address: play(transport, address) for address in (RECEIVER, *SENDERS)}
    results: dict[int, Any] = {}
    for _ in range(rounds):
        for address, role in list(roles.items()):
            try:
                next(role)
            except StopIteration as end:
                results[address] = end.value
                del roles[address]
        if not roles:
            return results
    raise AssertionError(f"roles {list(roles)} still wait after {rounds} rounds")
