"""One rank of a world in which rank 2 kills itself in mid-message: `... mpi_death WAY FOLDER`.

WAY: `rows`, `pool`, or `shared` for rows in memory that the ranks share, in which it sends; `to` for one in which it
receives.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from srlhpc.comm.channel import Inbox, Link, Outbox, Transport
from srlhpc.comm.mpi.deaths import watch_deaths
from srlhpc.comm.mpi.world import MpiTransport, MpiWorld, finalize_or_exit, join_world, leave_without_the_dead
from srlhpc.comm.node.links import share_links
from srlhpc.comm.node.rows import SharedRows
from tests.comm.scenarios import NUMBER, SENDERS, WIDE, links

SURVIVOR, VICTIM = SENDERS
SURVIVOR_MESSAGES = 300
VICTIM_MESSAGES = 20
SILENCE_SECONDS = 0.3
SLOTS, POOL_SLOTS = 3, 6


def send(outbox: Outbox, number: int) -> None:
    while (message := outbox.acquire()) is None:
        time.sleep(50e-6)
    message.header[NUMBER] = number
    message.fields["values"][:] = number
    outbox.send(message)


def die(outbox: Outbox) -> None:
    for number in range(VICTIM_MESSAGES):
        send(outbox, number)
    os.kill(os.getpid(), signal.SIGKILL)


def survive(outbox: Outbox) -> None:
    for number in range(SURVIVOR_MESSAGES):
        send(outbox, number)
        time.sleep(2e-3)
    outbox.send_last()
    while not outbox.is_drained:
        outbox.poll()
        time.sleep(50e-6)


def receive(inbox: Inbox) -> dict[str, object]:
    """Forgets the victim when it has been silent for a while."""
    numbers: dict[int, list[int]] = {SURVIVOR: [], VICTIM: []}
    torn, heard, is_forgotten = 0, time.monotonic(), False
    while not inbox.is_finished:
        inbox.poll()
        while (message := inbox.take()) is not None:
            number = int(message.header[NUMBER])
            numbers[message.sender].append(number)
            torn += not (message.fields["values"] == number).all()
            heard = time.monotonic() if message.sender == VICTIM else heard
            inbox.release(message)
        if numbers[VICTIM] and not is_forgotten and time.monotonic() - heard > SILENCE_SECONDS:
            inbox.forget(VICTIM)
            is_forgotten = True
        time.sleep(20e-6)
    start = time.monotonic()
    inbox.close()
    return {
        "survivor": numbers[SURVIVOR],
        "victim": numbers[VICTIM],
        "torn": torn,
        "close_seconds": time.monotonic() - start,
    }


def send_to_both(outboxes: Sequence[Outbox]) -> int:
    """One send each in turn, on and on after the victim's death; how many could be begun to the victim."""
    begun, to_survivor = 0, 0
    deadline = time.monotonic() + 20.0
    while to_survivor < SURVIVOR_MESSAGES and time.monotonic() < deadline:
        for outbox in outboxes:
            outbox.poll()
            is_victims = outbox is outboxes[1]
            if (message := outbox.acquire()) is None:
                continue
            message.header[NUMBER] = begun if is_victims else to_survivor
            message.fields["values"][:] = message.header[NUMBER]
            outbox.send(message)
            begun, to_survivor = begun + is_victims, to_survivor + (not is_victims)
        time.sleep(2e-3)
    outboxes[1].abandon()
    for outbox in outboxes:
        outbox.send_last()
    while not outboxes[0].is_drained:
        outboxes[0].poll()
        time.sleep(50e-6)
    return begun


def receive_some(inbox: Inbox, most: int) -> list[int]:
    """Numbers of the messages until LAST or until there were so many."""
    numbers: list[int] = []
    while not inbox.is_finished and len(numbers) < most:
        inbox.poll()
        while len(numbers) < most and (message := inbox.take()) is not None:
            numbers.append(int(message.header[NUMBER]))
            inbox.release(message)
        time.sleep(20e-6)
    return numbers


def main_to_the_dead(world: MpiWorld, transport: Transport, folder: str) -> None:
    ways = [Link(link.stream, link.destination, link.source, link.index) for link in links()]
    if world.rank == 0:
        begun = send_to_both([transport.outbox(way, WIDE, slots=SLOTS) for way in ways])
        Path(folder, "sender.json").write_text(json.dumps(begun))
    elif world.rank == SURVIVOR:
        inbox = transport.inbox([ways[0]], WIDE)
        Path(folder, "result.json").write_text(json.dumps(receive_some(inbox, 10**9)))
        inbox.close()
    else:
        receive_some(transport.inbox([ways[1]], WIDE), VICTIM_MESSAGES)
        os.kill(os.getpid(), signal.SIGKILL)


def main(way: str, folder: str) -> None:
    logging.basicConfig()
    world = join_world(3, timeout_seconds=30)
    rank_of = {address: address for address in range(3)}
    if way == "to":
        watch = watch_deaths(world, {1, 2}, [0])
        main_to_the_dead(world, MpiTransport(world.comm, rank_of, watch), folder)
        leave_without_the_dead(world, 0.1)
    node = share_links(world, rank_of, [SharedRows(tuple(links()), WIDE, SLOTS)]) if way == "shared" else None
    transport: Transport = MpiTransport(world.comm, rank_of) if node is None else node
    if world.rank == 0:
        result = receive(transport.inbox(links(), WIDE, pool=POOL_SLOTS if way == "pool" else None))
        Path(folder, "result.json").write_text(json.dumps(result))
    else:
        outbox = transport.outbox(links()[world.rank - 1], WIDE, slots=SLOTS)
        (survive if world.rank == SURVIVOR else die)(outbox)
    finalize_or_exit(world, 0.5)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
