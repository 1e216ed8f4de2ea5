"""One rank of three: 0 publishes, 1 and 2 share a node; 1 leads and kills itself: `... mpi_succession FOLDER`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.mpi.world import MpiTransport, MpiWorld, finalize_or_exit, join_world
from srlhpc.comm.node.parameters import SharedSubscription, Succession
from srlhpc.comm.node.window import share_on_node
from srlhpc.comm.parameters import (
    PULL_LAYOUT,
    SUBSCRIPTION_SLOTS,
    LinkSubscription,
    ParameterSource,
    parameter_layout,
)
from tests.comm.scenarios import RECEIVER, SENDERS, SMALL, links, say_last

SIZE = 1 << 20
LAST_VERSION = 30
LAST_OF_LEADER = 5
PATIENCE_SECONDS = 0.4
STEP_SECONDS = 0.02


def publish(transport: MpiTransport) -> None:
    """Forgets rank 1 when it says that it will die, as the coordinator would tell, before it publishes again."""
    ways = {s: transport.outbox(Link(Stream.PARAMETERS, RECEIVER, s), parameter_layout(SIZE), slots=1) for s in SENDERS}
    source = ParameterSource(SIZE, [transport.inbox(links(Stream.PULLS), PULL_LAYOUT)], ways)
    ends = [transport.inbox([link], SMALL) for link in links(Stream.REPORTS)]
    version, due = 0, time.monotonic()
    while not ends[1].is_finished:
        for end in ends:
            end.poll()
        if ends[0].is_finished:
            source.forget(1)
        if time.monotonic() >= due and version <= LAST_VERSION:
            source.publish(version, lambda vector, version=version: vector.fill(version))
            version, due = version + 1, due + STEP_SECONDS
        source.poll()
        time.sleep(50e-6)


def subscribe(world: MpiWorld, transport: MpiTransport, folder: str) -> None:
    share = share_on_node(world, SENDERS, SIZE)
    assert share is not None
    place = world.rank - 1
    upstream = LinkSubscription(
        SIZE,
        transport.outbox(links(Stream.PULLS)[place], PULL_LAYOUT, slots=1),
        transport.inbox(
            [Link(Stream.PARAMETERS, RECEIVER, world.rank)], parameter_layout(SIZE), pool=SUBSCRIPTION_SLOTS
        ),
    )
    rule = Succession(share.place, len(share.members), PATIENCE_SECONDS, time.monotonic)
    subscription = SharedSubscription(share.memory, share.place, upstream, SIZE, rule)
    last, versions, torn = LAST_OF_LEADER if world.rank == 1 else LAST_VERSION, [], False
    while subscription.version < last:
        if subscription.poll():
            versions.append(subscription.version)
            torn |= bool((subscription.vector != subscription.version).any())
        time.sleep(50e-6)
    result = {"versions": versions, "torn": torn, "led": subscription.is_leading}
    Path(folder, f"{world.rank}.json").write_text(json.dumps(result))
    for _ in say_last(transport.outbox(links(Stream.REPORTS)[place], SMALL, slots=1)):
        time.sleep(50e-6)
    if world.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str) -> None:
    world = join_world(3, host="source" if os.environ.get("PMI_RANK") == "0" else "node", timeout_seconds=30)
    assert world.nodes == (0, 1, 1)
    transport = MpiTransport(world.comm, {address: address for address in range(3)})
    if world.rank == RECEIVER:
        assert share_on_node(world, SENDERS, SIZE) is None
        publish(transport)
    else:
        subscribe(world, transport, folder)
    finalize_or_exit(world, 0.5)


if __name__ == "__main__":
    main(sys.argv[1])
