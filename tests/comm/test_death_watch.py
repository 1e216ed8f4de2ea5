"""Who is gone, by connections; without MPI."""

from __future__ import annotations

import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest

from srlhpc.comm.address import LOOPBACK
from srlhpc.comm.death_watch import SECRET_BYTES, DeathWatch, Door, has_descriptors, hold

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="for clusters, which have Linux")

HOLDER = """
import signal, socket, sys
from srlhpc.comm.address import Address
from srlhpc.comm.death_watch import hold
first = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
held, problems = hold(7, {Address("127.0.0.1", int(sys.argv[2])): bytes.fromhex(sys.argv[3])}, 5.0)
last = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(problems, flush=True)
signal.pause()
"""
"""A process with one connection that is watched, and others from before and after."""


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door(LOOPBACK, {7, 8})
    yield made
    made.close(0.0)


def greeting(secret: bytes, rank: int) -> bytes:
    return secret + rank.to_bytes(4, "big")


def close_all(connections: Iterable[socket.socket]) -> None:
    for connection in connections:
        connection.close()


def test_rank_is_gone_when_its_process_is_killed_and_that_is_seen_before_its_other_connections_close(
    door: Door,
) -> None:
    with socket.create_server((LOOPBACK, 0)) as others:
        arguments = [str(others.getsockname()[1]), str(door.address.port), door.secret.hex()]
        command = [sys.executable, "-c", HOLDER, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "[]\n"
            unwatched = [others.accept()[0] for _ in range(2)]
            watched = door.close(5.0)
            assert list(watched) == [7]
            watch = DeathWatch(watched)
            assert (watch.watches(7), watch.watches(8), watch.is_gone(7)) == (True, False, False)
            # An epoll gives descriptors in the order in which something happened to them.
            with select.epoll() as order:
                for connection in (*unwatched, watched[7]):
                    order.register(connection.fileno(), select.EPOLLRDHUP | select.EPOLLET)
                closed: list[int] = []
                holder.kill()
                while len(closed) < 3:
                    closed += [descriptor for descriptor, _ in order.poll()]
            assert closed[0] == watched[7].fileno()
            assert watch.is_gone(7)
            assert watch.sees_a_death
    watch.close()
    close_all(unwatched)


def test_many_that_are_gone_at_once_are_all_seen() -> None:
    pairs = [socket.socketpair() for _ in range(50)]
    watch = DeathWatch({rank: pair[0] for rank, pair in enumerate(pairs)})
    assert not watch.sees_a_death
    close_all(other for _, other in pairs[:-1])
    assert watch.is_gone(0)
    assert [rank for rank in range(50) if not watch.is_gone(rank)] == [49]
    watch.close()
    pairs[-1][1].close()


def test_strangers_are_turned_away_and_those_that_say_nothing_are_not_waited_for(door: Door) -> None:
    strangers = [socket.create_connection(door.address) for _ in range(4)]
    strangers[0].sendall(greeting(bytes(SECRET_BYTES), 7))
    strangers[1].sendall(greeting(door.secret, 3))
    strangers[2].sendall(b"GET / HTTP/1.1")
    held, problems = hold(8, {door.address: door.secret}, 5.0)
    known = door.close(0.05)
    assert (list(known), len(held), problems) == ([8], 1, [])
    assert [stranger.recv(1) for stranger in strangers] == [b""] * 4
    close_all([*strangers, *held, *known.values()])


def test_more_that_say_nothing_than_may_wait_then_those_that_know_the_secret_come_in_all_the_same(door: Door) -> None:
    strangers = [socket.create_connection(door.address) for _ in range(300)]
    held, _ = hold(8, {door.address: door.secret}, 5.0)
    known = door.close(0.0)
    assert list(known) == [8]
    close_all([*strangers, *held, *known.values()])


def test_where_nobody_listens_the_reason_is_told_and_the_others_are_held(door: Door) -> None:
    closed = Door(LOOPBACK, {8})
    closed.close(0.0)
    held, problems = hold(8, {closed.address: closed.secret, door.address: door.secret}, 5.0)
    known = door.close(5.0)
    assert (list(known), len(held), len(problems)) == ([8], 1, 1)
    assert problems[0].startswith(f"{LOOPBACK}:{closed.address.port}: ")
    assert "refused" in problems[0]
    close_all([*held, *known.values()])


@pytest.mark.parametrize(("hard", "allowed", "raised"), [(100_000, True, True), (20_000, False, False)])
def test_soft_limit_of_descriptors_is_raised_as_far_as_it_must_be(
    hard: int, allowed: bool, raised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: said.append(limits))
    assert has_descriptors(15_000) is allowed
    assert bool(said) is raised
    assert all(30_000 < soft < hard for soft, _ in said)
    assert has_descriptors(100)
    assert len(said) == raised
