"""A replay rank that two actors feed and a trainer draws from, over in-process links that a test moves by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.channel import Link, Message, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import CHUNK, HEADER_ONLY, Command, GrantHeader
from srlhpc.data.block_store import BlockStore
from srlhpc.data.blocks import BlockHeader, PolicyShapes, block_layout
from srlhpc.data.segment_log import SegmentLog
from srlhpc.data.windows import GENERATION, PRIORITY, SLOT, DrawHeader, WindowShape, draws_layout, window_layout
from srlhpc.roles.checkpoint_parts import PartReceiver, PartSender
from srlhpc.roles.grant_desk import GrantDesk
from srlhpc.roles.replaying.rate import Rate
from srlhpc.roles.replaying.replay import Replay
from srlhpc.roles.replaying.shard_part import ShardPart
from srlhpc.specs.replay import PrioritizedDraw
from tests.roles.counting_policy import KIND

T, E, COLUMNS, SLOTS = 4, 2, 8, 6
BLOCK = T * E
"""Records of a block."""
SHAPES = PolicyShapes(KIND, {}, {})
SHAPE = WindowShape(fragment_steps=1)
BLOCKS, WINDOWS, DRAWS = block_layout(SHAPES, T, E, 1), window_layout(SHAPES, 1, COLUMNS), draws_layout(COLUMNS)
ACTORS, TRAINER, REPLAY, COORDINATOR = (0, 1), 50, 100, 200
LABEL = "replay-default-0"


class Replaying:
    """Actor i has group i. Blocks count 4 steps of 2 environments; a draw is of 8 records.

    With a folder it hands over parts of checkpoints to `coordinator`, or in a serial run to whoever asks.
    """

    def __init__(
        self,
        *,
        samples_per_insert: float = 1.0,
        tolerance: float = 1000.0,
        start_steps: float = 0.0,
        folder: Path | None = None,
        serial: bool = False,
        filled: Callable[[BlockStore], None] = lambda _store: None,
        max_age: int | None = None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        transport = self.transport = InProcessTransport()
        blocks = [Link(Stream.BLOCKS, actor, REPLAY) for actor in ACTORS]
        asks = [Link(Stream.GRANT_REQUESTS, actor, REPLAY) for actor in ACTORS]
        answers = [Link(Stream.GRANTS, REPLAY, actor) for actor in ACTORS]
        windows, draws = Link(Stream.WINDOWS, REPLAY, TRAINER), Link(Stream.DRAWS, TRAINER, REPLAY)
        self.blocks = [transport.outbox(link, BLOCKS, slots=4) for link in blocks]
        self.asking = [transport.outbox(link, HEADER_ONLY, slots=1) for link in asks]
        self.answers = [transport.inbox([link], HEADER_ONLY) for link in answers]
        self.windows, self.draws = transport.inbox([windows], WINDOWS), transport.outbox(draws, DRAWS, slots=2)
        self.store = BlockStore(
            BLOCKS, SHAPE, slots=SLOTS, draw=PrioritizedDraw(uniform_share=0.0), generator=np.random.default_rng(1),
            first_priority=None, max_age=max_age,
        )  # fmt: skip
        filled(self.store)
        parts = Link(Stream.PARTS, REPLAY, COORDINATOR)
        self.coordinator = PartReceiver(transport.inbox([parts], CHUNK, pool=2))
        part = None
        if folder is not None:
            self.log = SegmentLog(folder, LABEL, slots=SLOTS, file_blocks=2, runs=self.store.runs, in_thread=not serial)
            sender = None if serial else PartSender(transport.outbox(parts, CHUNK, slots=2))
            part = ShardPart(self.store, self.log, {"index": 0}, sender)
        grants = {place: transport.outbox(link, HEADER_ONLY, slots=2) for place, link in enumerate(answers)}
        self.role = Replay(
            LABEL,
            self.store,
            Rate(samples_per_insert=samples_per_insert, tolerance=tolerance, start_steps=start_steps),
            blocks=transport.inbox(blocks, BLOCKS, pool=2),
            desk=GrantDesk(transport.inbox(asks, HEADER_ONLY), grants, worth=BLOCK),
            windows=transport.outbox(windows, WINDOWS, slots=2),
            draws=transport.inbox([draws], DRAWS),
            part=part,
            feeders=ACTORS,
            block_records=BLOCK,
            draw_records=COLUMNS,
            clock=clock,
        )
        self._sequences = [0] * len(ACTORS)

    def poll(self, times: int = 4) -> None:
        for _ in range(times):
            self.role.poll()

    def ask(self, actor: int, held: Holding = Holding.NOTHING) -> None:
        message = self.asking[actor].acquire()
        assert message is not None
        message.header[GrantHeader.GROUP] = actor
        message.header[GrantHeader.HOLDING] = held
        message.header[GrantHeader.BLOCKS] = 1
        self.asking[actor].send(message)
        self.poll()

    def granted(self) -> list[int]:
        """Actors that have got a grant since the last call."""
        found = []
        for actor, inbox in enumerate(self.answers):
            inbox.poll()
            if (grant := inbox.take()) is not None:
                assert grant.header[GrantHeader.NEEDS_VERSION] == 0
                found.append(actor)
                inbox.release(grant)
        return found

    def send(self, actor: int, reward: float = 0.0, *, valid: bool = True) -> None:
        """The actor's next block."""
        block = self.blocks[actor].acquire()
        assert block is not None
        for array in block.fields.values():
            array[...] = 0
        block.fields["rewards"][...] = reward
        block.fields["valid"][...] = valid
        header = block.header
        header[BlockHeader.GROUP], header[BlockHeader.SEQUENCE] = actor, self._sequences[actor]
        header[BlockHeader.VALID], header[BlockHeader.STEPS] = valid * BLOCK, valid * BLOCK
        self._sequences[actor] += 1
        self.blocks[actor].send(block)
        self.poll()

    def fill(self, blocks: int = 1) -> None:
        """Blocks of actor 0 that were granted."""
        for _ in range(blocks):
            self.ask(0)
            assert self.granted() == [0]
            self.send(0)

    def want(self, credit: int = 1, seen: Message | None = None, priority: float = 1.0, version: int = 0) -> None:
        """Says that there is room, and gives all windows of `seen` the same priority."""
        message = self.draws.acquire()
        assert message is not None
        message.header[DrawHeader.CREDIT] = credit
        message.header[DrawHeader.VERSION] = version
        message.header[DrawHeader.HAS_FEEDBACK] = seen is not None
        if seen is not None:
            message.fields[SLOT][:], message.fields[GENERATION][:] = seen.fields[SLOT], seen.fields[GENERATION]
            message.fields[PRIORITY][:] = priority
        self.draws.send(message)
        self.poll()

    def drawn(self) -> Message | None:
        """The next message of windows; the caller releases it."""
        self.windows.poll()
        return self.windows.take()

    def counter(self, name: str) -> float:
        return self.role.counters()[name]

    def stop(self) -> None:
        self.role.obey(Command(stop=True))
        self.poll()

    def asks(self, number: int, *, stop: bool = False) -> None:
        """The coordinator wants a checkpoint."""
        self.role.obey(Command(stop=stop, checkpoint=number))

    def handed_over(self) -> tuple[int, dict[str, Any]]:
        """The number of the next checkpoint and the part of it, once it has come."""
        while (found := self.coordinator.poll()) is None:
            self.poll(1)
        return found

    def state(self) -> dict[str, Any]:
        return {"role": self.role.save_state(), "links": self.transport.save_state()}
