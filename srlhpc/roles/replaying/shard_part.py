"""A replay rank's part of checkpoints: which files hold its blocks, and all that it knows beside them.

    nothing due --(asked)--> noted down, blocks being written --(written)--> part on its way --> handed over

Blocks come in and are drawn meanwhile: the part says how the store was when it was noted down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from srlhpc.comm.protocol import Command
from srlhpc.data.block_store import BlockStore
from srlhpc.data.segment_folder import runs_of, segments_of
from srlhpc.data.segment_log import SegmentLog
from srlhpc.data.segments import segments_to_tree
from srlhpc.roles.checkpoint_parts import PartSender

PROBLEM = "problem"
"""Stands in a part for all the rest if blocks could not be written."""


class ShardPart:
    """The way of one shard into checkpoints.

    Args:
        store: what is kept.
        log: where its blocks are written.
        identity: what else the part says, so that another run knows whether it fits.
        sender: to the coordinator; None in serial runs, where the world stands still and `write_now` gives the part.
        clock: seconds.
    """

    def __init__(
        self,
        store: BlockStore,
        log: SegmentLog,
        identity: Mapping[str, Any],
        sender: PartSender | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._store, self._log, self._identity, self._sender, self._clock = store, log, identity, sender, clock
        self._asked = self._sent = 0
        self._noted: dict[str, Any] | None = None
        self._seconds = 0.0

    def counters(self) -> dict[str, float]:
        """Bytes that have gone into files in this attempt, and the time of parts, but for what was written beside."""
        return {"kept_bytes": self._log.written_bytes, "checkpoint_seconds": self._seconds}

    # --- blocks ------------------------------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Call it before a block comes in, which may overwrite one that is being written."""
        self._log.make_room(self._store.inserted_blocks - self._store.slots)

    def added(self) -> None:
        """A block came in."""
        if self._noted is None:
            self._log.added(self._store.inserted_blocks)

    # --- parts -------------------------------------------------------------------------------------------------------

    def obey(self, command: Command) -> None:
        """Takes note of what was asked for."""
        self._asked = max(self._asked, command.checkpoint)

    def poll(self) -> bool:
        """Goes one step further on the way of a part."""
        if self._sender is None:
            return False
        begun = self._clock()
        moved = self._sender.poll() or self._step(self._sender)
        if moved:
            self._seconds += self._clock() - begun
        return moved

    def _step(self, sender: PartSender) -> bool:
        if self._noted is None:
            if self._sent >= self._asked or not (sender.is_idle and self._log.is_idle):
                return False
            self._sent = self._asked
            self._noted = self._store.save_state()
            self._log.write(self._store.inserted_blocks)
        if not self._log.is_idle:
            return False
        sender.begin(self._sent, self._part(self._noted))
        self._noted = None
        return True

    def _part(self, noted: Mapping[str, Any]) -> dict[str, Any]:
        named = self._log.named(int(noted["inserted_blocks"]))
        if named is None:
            return {PROBLEM: self._log.problem or "blocks were overwritten before they could be written"}
        return {**self._identity, "store": noted, "segments": segments_to_tree(named)}

    @property
    def is_over(self) -> bool:
        """Whether all that was asked for has left."""
        return self._sender is None or (self._noted is None and self._sent >= self._asked and self._sender.is_idle)

    def write_now(self) -> dict[str, Any]:
        """Writes what is not written yet, and gives the part.

        Raises:
            OSError: the disk is full, say.
        """
        noted = self._store.save_state()
        self._log.write(self._store.inserted_blocks)
        self._log.require_written()
        return self._part(noted)

    def load(self, part: Mapping[str, Any]) -> None:
        """Takes back what `write_now` gave, bit for bit, into an empty store of the same shapes.

        Raises:
            UserError: a file is missing or damaged.
            ValueError: the blocks are others.
        """
        if not self._store.fits(part["store"]):
            raise ValueError("its slots, windows or draws are others")
        self._store.load_state(part["store"], runs_of(part, self._log.folder))
        self._log.go_on(segments_of(part), self._store.inserted_blocks)

    def close(self) -> None:
        """Waits for what is being written."""
        self._log.close()


def problems_of(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What parts lack, in words."""
    return [f"{label}: {part[PROBLEM]}" for label, part in parts.items() if PROBLEM in part]


def whole_parts(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The parts that can be gone on from."""
    return {label: part for label, part in parts.items() if PROBLEM not in part}
