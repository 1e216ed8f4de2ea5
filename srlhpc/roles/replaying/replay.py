"""The replay rank: keeps the blocks that come, sends windows of them to the trainer that asks, and keeps the pace.

    filling --(enough came in)--> running --(told to stop)--> dropping blocks and wishes
                                      --(every actor and the trainer said LAST)--> LAST on windows --> done

A message of windows is drawn only when the trainer has room for it, and what the trainer says of earlier windows is
taken in first. Groups start a block only when granted: while the store fills, while nothing can be drawn, and as far as
the rate allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.comm.protocol import Command
from srlhpc.data.block_store import BlockStore
from srlhpc.data.dealing import CAME_IN
from srlhpc.data.windows import GENERATION, PRIORITY, SLOT, DrawHeader, WindowHeader
from srlhpc.errors import ClusterError, counted
from srlhpc.roles.grant_desk import GrantDesk
from srlhpc.roles.replaying.rate import Rate
from srlhpc.roles.replaying.shard_part import ShardPart
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import Part, TimeUse

_ANY_VERSION = 0
"""Version that a granted block needs: records of replay may be of any."""


class Replay(Role):
    """One shard of a policy's replay.

    Args:
        label: of the role.
        store: what is kept.
        rate: how often it is drawn from.
        blocks: the pool.
        desk: where groups ask for leave to start a block, counted in records.
        windows: to the trainer that draws from this shard.
        draws: from it.
        part: of checkpoints; None: they hold nothing of the store.
        feeders: addresses of the actors whose blocks come here.
        block_records: records of a block.
        draw_records: trained records of a message of windows.
        refills: whether it begins empty, in a run that had more.
        clock: seconds.
    """

    def __init__(
        self,
        label: str,
        store: BlockStore,
        rate: Rate,
        *,
        blocks: Inbox,
        desk: GrantDesk,
        windows: Outbox,
        draws: Inbox,
        part: ShardPart | None,
        feeders: Collection[int],
        block_records: int,
        draw_records: int,
        refills: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.label = label
        self._store, self._rate = store, rate
        self._blocks, self._desk, self._windows, self._draws = blocks, desk, windows, draws
        self._part, self._refills = part, refills
        self._feeders = set(feeders)
        self._block_records, self._draw_records = block_records, draw_records
        self._credit = 0
        self._sent = 0
        # What was there before this attempt was counted then.
        self._before = {name: int(getattr(store, name)) for name in CAME_IN}
        self._dropped_priorities = 0
        self._relief = 0
        self._stopping = self._last_said = False
        self._idle: Part = "input"
        self._time = TimeUse(clock)

    # --- polling -------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        self._time.spent(self._idle)
        busy = self._blocks.poll()
        busy |= self._collect()
        busy |= self._hear()
        self._desk.listen()
        if self._part is not None:
            busy |= self._part.poll()
        if self._stopping:
            busy |= self._end()
        else:
            self._rate.begin(self._store.inserted_steps, self._inserted)
            busy |= self._send()
            busy |= self._grant()
        self._windows.poll()
        self._idle = self._lets_wait()
        if busy:
            self._time.spent("computing")
        return busy

    @property
    def _inserted(self) -> int:
        """Records that came in or were granted and may still come."""
        return self._desk.started - self._desk.lost

    def _collect(self) -> bool:
        busy = False
        while (block := self._blocks.take()) is not None:
            # Before it may be dropped: it is no longer under way.
            self._desk.received(block.sender)
            if not self._stopping:
                self._add(block)
            self._blocks.release(block)
            busy = True
        return busy

    def _add(self, block: Message) -> None:
        if self._part is None:
            self._store.add(block)
            return
        self._part.make_room()
        self._store.add(block)
        self._part.added()

    def _hear(self) -> bool:
        """Takes in what the trainer says of earlier windows, and how many more it has room for."""
        self._draws.poll()
        busy = False
        while (draw := self._draws.take()) is not None:
            if draw.header[DrawHeader.HAS_FEEDBACK]:
                self._prioritize(draw)
            self._credit += int(draw.header[DrawHeader.CREDIT])
            self._store.expire(int(draw.header[DrawHeader.VERSION]))
            self._draws.release(draw)
            busy = True
        return busy

    def _prioritize(self, draw: Message) -> None:
        fields = draw.fields
        self._dropped_priorities += self._store.update(fields[SLOT], fields[GENERATION], fields[PRIORITY])

    def _send(self) -> bool:
        """Draws one message of windows, if the trainer has room for it and the rate allows it."""
        if not (self._credit and self._store.drawable and self._may_draw):
            return False
        message = self._windows.acquire()
        if message is None:
            return False
        self._store.draw(message.fields)
        header = message.header
        header[WindowHeader.SEQUENCE] = self._sent
        header[WindowHeader.INSERTED_STEPS] = self._came_in("inserted_steps")
        header[WindowHeader.INSERTED_VALID] = self._came_in("inserted_valid")
        self._windows.send(message)
        self._rate.drawn += self._draw_records
        self._credit -= 1
        self._sent += 1
        return True

    def _came_in(self, name: str) -> int:
        """What the store has counted since the attempt began."""
        return int(getattr(self._store, name)) - self._before[name]

    def _grant(self) -> bool:
        busy = self._desk.grant_hurried(_ANY_VERSION)
        while self._desk.asking and self._may_grant:
            busy |= self._desk.grant_first(_ANY_VERSION)
        return busy

    @property
    def _may_draw(self) -> bool:
        return self._rate.may_draw(self._draw_records, self._inserted)

    @property
    def _may_grant(self) -> bool:
        return not self._store.drawable or self._rate.may_insert(self._block_records, self._inserted)

    def _end(self) -> bool:
        """Says LAST once nobody sends any more."""
        self._credit = 0
        if self._last_said or not (self._blocks.is_finished and self._draws.is_finished):
            return False
        self._last_said = self._windows.send_last()
        return self._last_said

    # --- who waits -----------------------------------------------------------------------------------------------

    def _lets_wait(self) -> Part:
        """What the time until the next poll counts as: for whom the rate makes wait, or else for more to come."""
        if self._stopping or not (self._rate.is_running and self._store.drawable):
            return "input"
        if self._credit and not self._may_draw:
            return "others"
        return "slot" if self._desk.asking and not self._may_grant else "input"

    def waits_for(self) -> str:
        if self._part is not None and self._stopping and not self._part.is_over:
            return "writes its blocks for the last checkpoint"
        if self._last_said:
            return ""
        store, rate = self._store, self._rate
        if self._stopping:
            return "waits for the last words of its actors and its trainer"
        if not rate.is_running:
            return f"waits for blocks: {store.inserted_steps:,} of {rate.start_steps:,.0f} steps came in"
        if not store.drawable:
            return f"waits for blocks: {_nothing_drawable(store)}"
        asking = f", and has {counted(self._desk.asking, 'request')} for grants" if self._desk.asking else ""
        if not self._credit:
            return f"waits for its trainer, which has all it wanted{asking}"
        if not self._may_draw:
            return f"waits for blocks: replay.samples_per_insert allows no draw before{asking}"
        return f"waits for its trainer to take windows{asking}"

    # --- role ----------------------------------------------------------------------------------------------------

    def obey(self, command: Command) -> None:
        self._stopping |= command.stop
        if self._part is not None:
            self._part.obey(command)
        if command.relief > self._relief:
            self._relief = command.relief
            self._desk.grant_all(_ANY_VERSION)
        if not self._feeders and not self._stopping:
            raise ClusterError(f"every actor that feeds {self.label} is dead; its trainer would wait for ever")

    def forget(self, addresses: Collection[int]) -> None:
        self._feeders.difference_update(addresses)
        for address in addresses:
            self._blocks.forget(address)
            self._draws.forget(address)
        self._desk.forget(addresses)

    def counters(self) -> dict[str, float]:
        store = self._store
        return {
            "filling": float(not self._rate.is_running),
            "refills": float(self._refills),
            "start_steps": self._rate.start_steps,
            "steps_inserted": store.inserted_steps,
            "records_inserted": self._came_in("inserted_records"),
            "records_drawn": self._rate.drawn,
            "drawable": store.drawable,
            "blocks": store.blocks,
            "slots": store.slots,
            "too_old": store.expired,
            "dropped_priorities": self._dropped_priorities,
            **({} if self._part is None else self._part.counters()),
            **self._time.counters(),
        }

    @property
    def moves(self) -> int:
        return self._store.inserted_blocks + self._sent + self._desk.started + self._last_said

    @property
    def is_done(self) -> bool:
        return self._last_said and self._windows.is_drained and (self._part is None or self._part.is_over)

    def shard_part(self) -> Mapping[str, Any]:
        """The store's part of a checkpoint; its blocks are written when this returns.

        Raises:
            OSError: they cannot be written.
        """
        assert self._part is not None
        return self._part.write_now()

    def save_state(self) -> Mapping[str, Any]:
        """All but the store, which is in `shard_part`."""
        return {
            "rate": self._rate.save_state(),
            "grants": self._desk.save_state(),
            "credit": self._credit,
            "sent": self._sent,
            "before": self._before,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._rate.load_state(state["rate"])
        self._desk.load_state(state["grants"])
        self._credit, self._sent = int(state["credit"]), int(state["sent"])
        self._before = {name: int(state["before"][name]) for name in CAME_IN}

    def load_shard(self, part: Mapping[str, Any]) -> None:
        """Takes back what `shard_part` gave, bit for bit."""
        assert self._part is not None
        self._part.load(part)

    def close(self) -> None:
        self._blocks.close()
        self._draws.close()
        self._desk.close()
        if self._part is not None:
            self._part.close()


def _nothing_drawable(store: BlockStore) -> str:
    held = counted(store.blocks, "block")
    if store.expired:
        return f"no window is whole and young enough ({held}, {store.expired:,} too old)"
    return f"none of its windows is whole yet ({held})"
