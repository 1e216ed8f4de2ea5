"""Who gets which parameters, and when."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from srlhpc.comm.channel import Link, Message, Outbox, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.parameters import (
    NO_VERSION,
    PULL_LAYOUT,
    SUBSCRIPTION_SLOTS,
    LinkSubscription,
    LocalSubscription,
    ParameterSource,
    Vector,
    parameter_layout,
)

SIZE = 5
SOURCE = 0


def filled(value: int) -> Callable[[Vector], None]:
    def write(vector: Vector) -> None:
        vector.fill(value)

    return write


class Network:
    """A source and two subscribers, 1 and 2, in one process."""

    def __init__(self) -> None:
        transport, layout = InProcessTransport(), parameter_layout(SIZE)
        pulls = {address: Link(Stream.PULLS, address, SOURCE) for address in (1, 2)}
        ways = {address: Link(Stream.PARAMETERS, SOURCE, address) for address in (1, 2)}
        self.source = ParameterSource(
            SIZE,
            [transport.inbox(list(pulls.values()), PULL_LAYOUT)],
            {address: transport.outbox(way, layout, slots=1) for address, way in ways.items()},
        )
        self.subscribers = {
            address: LinkSubscription(
                SIZE,
                transport.outbox(pulls[address], PULL_LAYOUT, slots=1),
                transport.inbox([ways[address]], layout, pool=SUBSCRIPTION_SLOTS),
            )
            for address in (1, 2)
        }

    def poll(self, *addresses: int) -> None:
        for _ in range(3):
            for address in addresses:
                self.subscribers[address].poll()
            self.source.poll()
        for address in addresses:
            self.subscribers[address].poll()


def test_pull_is_parked_until_something_is_published() -> None:
    network = Network()
    network.poll(1, 2)
    assert network.subscribers[1].version == NO_VERSION
    network.source.publish(0, filled(7), steps=64)
    network.poll(1)
    assert network.subscribers[1].version == 0
    assert network.subscribers[1].steps == 64
    assert network.subscribers[1].vector.tolist() == [7.0] * SIZE


class Lazy(Outbox):
    """Finds out only in a poll what has arrived, as over MPI."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox, self._drained = outbox, True

    def acquire(self) -> Message | None:
        return self._outbox.acquire()

    def send(self, message: Message, size_bytes: int | None = None) -> None:
        self._outbox.send(message, size_bytes)
        self._drained = False

    def poll(self) -> bool:
        self._drained = self._outbox.is_drained
        return self._outbox.poll()

    def send_last(self) -> bool:
        return self._outbox.send_last()

    @property
    def is_drained(self) -> bool:
        return self._drained

    def abandon(self) -> None:
        self._outbox.abandon()


def test_parameters_are_under_way_until_they_have_arrived() -> None:
    transport, layout, way = InProcessTransport(), parameter_layout(SIZE), Link(Stream.PARAMETERS, SOURCE, 1)
    pull = Link(Stream.PULLS, 1, SOURCE)
    outbox = Lazy(transport.outbox(way, layout, slots=1))
    source = ParameterSource(SIZE, [transport.inbox([pull], PULL_LAYOUT)], {1: outbox})
    pulls, parameters = transport.outbox(pull, PULL_LAYOUT, slots=1), transport.inbox([way], layout, pool=1)
    subscriber = LinkSubscription(SIZE, pulls, parameters)
    subscriber.poll()
    source.publish(0, filled(7))
    source.poll()
    assert source.is_sending
    subscriber.poll()
    assert not source.is_sending


def test_slow_subscriber_skips_versions() -> None:
    network, seen = Network(), []
    network.source.publish(0, filled(0))
    network.poll(1)
    for version in range(1, 6):
        network.source.publish(version, filled(version))
    for _ in range(4):
        network.source.poll()
        if network.subscribers[1].poll():
            seen.append(network.subscribers[1].version)
    assert seen == [5]


def test_late_publish_never_moves_backwards() -> None:
    network = Network()
    assert network.source.publish(4, filled(4))
    assert not network.source.publish(3, filled(3))
    assert not network.source.publish(4, filled(9))
    network.poll(1)
    assert network.subscribers[1].version == 4
    assert network.subscribers[1].vector.tolist() == [4.0] * SIZE


def test_vector_stays_the_same_until_the_next_poll() -> None:
    network = Network()
    network.source.publish(0, filled(1))
    network.poll(1)
    vector = network.subscribers[1].vector
    for version in range(1, 4):
        network.source.publish(version, filled(9))
        network.source.poll()
    assert vector.tolist() == [1.0] * SIZE


def test_subscriber_asks_only_when_it_was_answered() -> None:
    network = Network()
    network.poll(1)
    network.poll(1)
    network.source.publish(0, filled(0))
    assert network.source.poll()
    assert not network.source.poll(), "one pull, one answer"


def test_dead_subscriber_is_not_sent_to_and_the_other_is() -> None:
    network = Network()
    network.poll(1, 2)
    network.source.forget(1)
    network.source.publish(0, filled(0))
    network.poll(2)
    network.subscribers[1].poll()
    assert network.subscribers[1].version == NO_VERSION
    assert network.subscribers[2].version == 0


def test_forgetting_twice_or_a_stranger_is_harmless() -> None:
    network = Network()
    for address in (1, 1, 99):
        network.source.forget(address)
    network.source.publish(0, filled(0))
    network.poll(2)
    assert network.subscribers[2].version == 0


def test_local_subscription_reads_the_source_without_a_copy() -> None:
    source = ParameterSource(SIZE)
    local = LocalSubscription(source)
    assert not local.poll()
    assert local.version == NO_VERSION
    written: list[Vector] = []
    source.publish(0, written.append, steps=64)
    assert local.poll()
    assert local.steps == 64
    assert np.shares_memory(local.vector, written[0])


def test_publishing_never_writes_where_a_local_subscription_reads() -> None:
    source = ParameterSource(SIZE)
    first, second = LocalSubscription(source), LocalSubscription(source)
    source.publish(0, filled(0))
    first.poll()
    source.publish(1, filled(1))
    second.poll()
    for version in (2, 3, 4):
        source.publish(version, filled(version))
    assert first.vector.tolist() == [0.0] * SIZE
    assert second.vector.tolist() == [1.0] * SIZE


def test_buffers_are_used_again() -> None:
    source = ParameterSource(SIZE)
    local = LocalSubscription(source)
    written: list[int] = []
    for version in range(10):
        source.publish(version, lambda vector: written.append(vector.ctypes.data))
        local.poll()
    assert len(set(written)) <= 3


@pytest.mark.parametrize("size", [1, SIZE])
def test_layout_holds_the_vector_on_a_border(size: int) -> None:
    layout = parameter_layout(size)
    assert layout.views(layout.allocate())["vector"].shape == (size,)
