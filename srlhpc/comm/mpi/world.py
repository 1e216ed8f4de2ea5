"""The MPI world: start it, check it, leave it; and the transport whose links go from rank to rank.

No rank blocks inside MPI: a blocked receive spins a core and never runs Python's signal handlers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.channel import Inbox, Link, Outbox, Stream, Transport
from srlhpc.comm.death_watch import DeathWatch
from srlhpc.comm.mpi.inbox import MpiRowInbox
from srlhpc.comm.mpi.library import MPI, init_mpi
from srlhpc.comm.mpi.outbox import MpiOutbox
from srlhpc.comm.mpi.pool import MpiPoolInbox
from srlhpc.data.layout import Layout
from srlhpc.errors import ClusterError, UserError, counted

_LARGEST_MESSAGE_BYTES = 2**31 - 1
_DIGEST_BYTES = 16
_RANK_BYTES = 4
_TEXT_BYTES = 2048
_FIRST_PAUSE_SECONDS, _PAUSE_GROWTH, _LONGEST_PAUSE_SECONDS = 1e-3, 1.5, 50e-3
"""Pauses between polls: hundreds of ranks that looked all the time would slow down those that start late."""
_STREAM_LIMIT = 16
"""Streams that a tag can tell apart."""
RENDEZVOUS_TAG = _STREAM_LIMIT - 1
"""Tag of messages of the start, which belong to no link."""


class WorldSizeError(ClusterError):
    """MPI started another number of ranks than planned: the launcher and this MPI do not fit together."""

    kind = "world"


class DifferenceError(ClusterError):
    """Ranks were started from different specs or installations."""

    kind = "difference"


@dataclass(frozen=True)
class MpiWorld:
    """All ranks of the step."""

    comm: MPI.Intracomm
    rank: int
    size: int
    nodes: tuple[int, ...]
    """Node of each rank: the lowest rank that has the same host name."""

    @property
    def node(self) -> int:
        return self.nodes[self.rank]

    def require_equal(self, facts: Mapping[str, str], timeout_seconds: float = 60.0) -> None:
        """Refuses a world whose ranks differ in anything that must be equal: spec, layouts, library versions.

        Args:
            facts: what it is, and its value here; the same names on all ranks.
            timeout_seconds: how long to wait for the others.

        Raises:
            DifferenceError: names the first rank that differs from rank 0, and in what.
            ClusterError: not all ranks answered.
        """
        digests = b"".join(_digest(value) for value in facts.values())
        everyone = all_gather(self.comm, np.frombuffer(digests, np.uint8), timeout_seconds)
        everyone = everyone.reshape(self.size, len(facts), _DIGEST_BYTES)
        differs = (everyone != everyone[0]).any(axis=2)
        if not differs.any():
            return
        other = int(np.flatnonzero(differs.any(axis=1))[0])
        names = [name for name, bad in zip(facts, differs[other], strict=True) if bad]
        text = "; ".join(f"{name} {facts[name]}" for name in names) + f" on rank {self.rank} ({socket.gethostname()})"
        # All ranks have found the same `other`, so all take part in the same two broadcasts.
        both = [self.text_of(rank, text, timeout_seconds) for rank in (0, other)]
        raise DifferenceError(
            f"ranks differ in {', '.join(names)}: {both[0]}, but {both[1]}. All must start from the same spec and the "
            "same installation: was one changed while the job was starting? Do all nodes see the same Python "
            "(python, modules and setup in the cluster profile, PYTHONPATH)?"
        )

    def text_of(self, rank: int, own: str, timeout_seconds: float) -> str:
        """The text of one rank, on all ranks; each calls it with a text of its own."""
        text = np.frombuffer(own.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), np.uint8).copy()
        wait(self.comm.Ibcast([text, MPI.BYTE], root=rank), timeout_seconds)
        return text.tobytes().rstrip(b"\0").decode(errors="replace")


def join_world(
    expected_size: int, *, rank: int | None = None, host: str | None = None, timeout_seconds: float = 300.0
) -> MpiWorld:
    """Initialises MPI and meets all other ranks.

    Args:
        expected_size: ranks of the plan.
        rank: this rank's number in the plan; the launcher may number them in another order. None: as it does.
        host: name of this rank's node; one machine can pose as several.
        timeout_seconds: how long to wait for the others.

    Raises:
        WorldSizeError: the world has another size.
        ClusterError: some rank did not come.
    """
    init_mpi()
    size = MPI.COMM_WORLD.Get_size()
    if size != expected_size:
        # Nobody else is there to open the files by their names.
        if size == 1:
            unlink_shared_memory()
        raise WorldSizeError(_wrong_size(size, expected_size, MPI.Get_library_version()))
    number = MPI.COMM_WORLD.Get_rank() if rank is None else rank
    own = number.to_bytes(_RANK_BYTES, "big") + _digest(host or socket.gethostname())
    everyone = all_gather(MPI.COMM_WORLD, np.frombuffer(own, np.uint8), timeout_seconds)
    # Everyone has answered, so every rank of this node has mapped the files by now.
    unlink_shared_memory()
    # Each row begins with its rank, highest byte first: sorting bytes sorts by rank.
    names = [row[_RANK_BYTES:] for row in sorted(row.tobytes() for row in everyone)]
    nodes = tuple(names.index(name) for name in names)
    # A communicator of its own even where the numbering is the same: MPI refuses to be finalised while the world's has
    # messages that nobody received, and a simulator may use the world's.
    comm = MPI.COMM_WORLD.Split(0, number)
    assert isinstance(comm, MPI.Intracomm)
    return MpiWorld(comm, number, size, nodes)


def all_gather(comm: MPI.Comm, own: NDArray[np.uint8], timeout_seconds: float) -> NDArray[np.uint8]:
    """The bytes of every rank, `[ranks, bytes]`; for the start, polled, so that a missing rank is an error."""
    everyone = np.empty((comm.Get_size(), own.size), np.uint8)
    wait(comm.Iallgather([own, MPI.BYTE], [everyone, MPI.BYTE]), timeout_seconds)
    return everyone


def wait(request: MPI.Request, timeout_seconds: float, meanwhile: Callable[[], None] | None = None) -> None:
    """Polls one request of the start-up.

    Args:
        request: of all ranks.
        timeout_seconds: how long.
        meanwhile: is called between polls.

    Raises:
        ClusterError: it takes too long.
    """
    deadline, pause = time.monotonic() + timeout_seconds, _FIRST_PAUSE_SECONDS
    while not request.Test():
        if time.monotonic() > deadline:
            raise ClusterError(
                f"not all ranks answered within {timeout_seconds:.0f} s of the start; the log of a missing rank "
                "says more (out of memory, an import that fails, a node that is down)"
            )
        if meanwhile is not None:
            meanwhile()
        time.sleep(pause)
        pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE_SECONDS)


def unlink_shared_memory() -> None:
    """Removes the names of MPICH's and Open MPI's shared memory files, which stay mapped.

    Call it when all ranks of the node have opened them. MPICH names them after job and step: a file that a killed
    step left behind would break the start of a requeued one.
    """
    maps = Path("/proc/self/maps")
    if maps.exists():
        for path in set(re.findall(r"/dev/shm/(?:mpich_shm_|sm_segment\.)\S+", maps.read_text())):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def abort(code: int) -> NoReturn:
    """Ends all ranks of the step, at once."""
    MPI.COMM_WORLD.Abort(code)
    # Under mpiexec without its clean-up it may come back.
    os._exit(code)


def finalize_or_exit(world: MpiWorld, timeout_seconds: float, code: int = 0) -> None:
    """Leaves MPI if all ranks do so within the time, else ends this process.

    With a dead rank MPI_Finalize hangs for ever and holds the interpreter's lock: only a barrier that is polled can
    find that out beforehand, and only a thread of C (faulthandler's) can still end it.
    """
    if not _all_leave(world, timeout_seconds):
        _exit(code)
    faulthandler.dump_traceback_later(timeout_seconds, exit=True)
    MPI.Finalize()
    faulthandler.cancel_dump_traceback_later()


def leave_without_the_dead(world: MpiWorld, seconds: float, code: int = 0) -> NoReturn:
    """Ends this process when what is under way has had some time to leave; no barrier, which would send to the dead."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(MPI.Exception):
        while time.monotonic() < deadline:
            # Any call will do: MPI moves what is under way only inside one.
            world.comm.Iprobe()
            time.sleep(1e-3)
    _exit(code)


def _exit(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _all_leave(world: MpiWorld, timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    try:
        request = world.comm.Ibarrier()
        while not request.Test():
            if time.monotonic() > deadline:
                return False
            time.sleep(1e-3)
    except MPI.Exception:
        # Open MPI knows who is dead.
        return False
    return True


class MpiTransport(Transport):
    """Links between ranks.

    It keeps every end that it made, since MPI writes into their memory for as long as something is posted.

    Args:
        comm: a communicator that nothing else sends on.
        rank_of: address of every role to its rank; equal on all ranks.
        watch: tells which ranks are gone; None where MPI bears sends to them.
    """

    def __init__(self, comm: MPI.Comm, rank_of: Mapping[int, int], watch: DeathWatch | None = None) -> None:
        self._watch = watch
        self._comm = comm
        self._rank_of = dict(rank_of)
        # The standard promises tags up to 32767, also where nobody answers.
        self._tags = _Tags(rank_of, int(comm.Get_attr(MPI.TAG_UB) or 32767))
        self._ends: list[Outbox | Inbox] = []

    def outbox(self, link: Link, layout: Layout, *, slots: int, synchronous: bool = True) -> Outbox:
        _check_size(link, layout)
        rank, tag = self._rank_of[link.destination], self._tags.tag(link)
        watch = self._watch if self._watch is not None and self._watch.watches(rank) else None
        outbox = MpiOutbox(self._comm, rank, tag, link, layout, slots, synchronous=synchronous, watch=watch)
        self._ends.append(outbox)
        return outbox

    def inbox(self, links: Sequence[Link], layout: Layout, *, pool: int | None = None) -> Inbox:
        for link in links:
            _check_size(link, layout)
        senders = [link.source for link in links]
        ranks = [self._rank_of[sender] for sender in senders]
        tags = [self._tags.tag(link) for link in links]
        inbox: Inbox
        if pool is not None:
            assert len(set(tags)) == 1, "the links of a pool have the same stream, destination and index"
            inbox = MpiPoolInbox(self._comm, layout, senders, ranks, tags[0], pool)
        else:
            ends = set(zip(ranks, tags, strict=True))
            assert len(ends) == len(links), "links from one rank to one role need different indexes, or a pool"
            inbox = MpiRowInbox(self._comm, layout, senders, ranks, tags)
        self._ends.append(inbox)
        return inbox

    def close(self) -> None:
        for end in self._ends:
            if isinstance(end, Inbox):
                end.close()


class _Tags:
    """Numbers for (stream, index, which of the roles on the receiving rank)."""

    def __init__(self, rank_of: Mapping[int, int], largest: int) -> None:
        self._largest = largest
        self._place: dict[int, int] = {}
        roles: dict[int, int] = {}
        # Sorted, so that both ends of a link number the roles of a rank alike.
        for address in sorted(rank_of):
            self._place[address] = roles.get(rank_of[address], 0)
            roles[rank_of[address]] = self._place[address] + 1
        self._width = max(roles.values(), default=1)

    def tag(self, link: Link) -> int:
        """The MPI tag of a link; both ends compute the same."""
        assert max(Stream) < RENDEZVOUS_TAG
        # One number of three digits, the stream the lowest: tags of two links to a rank never meet.
        tag = (link.index * self._width + self._place[link.destination]) * _STREAM_LIMIT + link.stream
        if tag > self._largest:
            raise UserError(
                f"{link} needs MPI tag {tag}, and this MPI's largest is {self._largest}; "
                "use fewer groups (actors.ring) or policies per rank"
            )
        return tag


def _check_size(link: Link, layout: Layout) -> None:
    if layout.size_bytes > _LARGEST_MESSAGE_BYTES:
        raise UserError(
            f"one message of {link.stream.name.lower()} has {layout.size_bytes} bytes, and MPI moves at most "
            f"{_LARGEST_MESSAGE_BYTES}; use fewer environments per group or shorter fragments"
        )


def _wrong_size(size: int, expected: int, library: str) -> str:
    ranks = counted(size, "rank")
    if "Open MPI" in library:
        remedy = "srun --mpi=pmix, or Open MPI's own mpiexec"
    elif "MPICH" in library or "CRAY" in library.upper():
        remedy = "srun --mpi=pmi2, or MPICH's own mpiexec"
    else:
        remedy = "srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list names them), or its own mpiexec"
    name = library.split("\n")[0].split("\x00")[0].strip()
    return f"MPI started {ranks} of {expected}; this MPI ({name}) needs {remedy}"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]
