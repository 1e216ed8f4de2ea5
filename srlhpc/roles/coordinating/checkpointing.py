"""Puts the parts of a checkpoint together and writes it in a thread of its own."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from srlhpc.comm.protocol import VERSION
from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.data.forgiving import FileSystemLostError
from srlhpc.data.full_disk import not_written
from srlhpc.data.score import Score
from srlhpc.data.segment_folder import REPLAY, SegmentFolder
from srlhpc.roles.checkpoint_parts import PartReceiver
from srlhpc.roles.coordinating.version_writing import VersionWriting
from srlhpc.roles.replaying.shard_part import problems_of, whole_parts

log = logging.getLogger(__name__)

_POLICY = "policy"
RETRY_SECONDS = 2.0
"""Seconds between two tries to write the last checkpoint."""


class Checkpointing:
    """One checkpoint at a time: asked -> parts arrive -> written (or given up).

    The last one, which `insist` is called for, is tried again and again until it is written or `give_up` is called.

    Args:
        folder: where files go.
        parts: policy to its receiver, that whose updates and steps are the run's first; a checkpoint is whole when
            each has sent its part.
        meta: what else goes into the file, called when the last part is here.
        score: how good the weights are, called with it.
        shards: label of a replay rank to its receiver; a checkpoint waits for them, too.
        shard_parts: serial mode: what those would send, taken when the file is written; may fail as that may.
        versions: what writes the versions that trainers send between those; None: there are none.
        others: further entries of the file, by name, taken when the last part is here.
        segments: the files of blocks that those parts name; None: nobody keeps them in order.
        roles_state: serial mode: the state of all roles, taken when the last part is here and the trainers hold.
        spared: file of the checkpoint that the run went on from, and updates of each policy there, if it holds replay
            which this attempt could not take over. It is not written over before a policy has trained: its replay
            would be lost.
        in_thread: write beside the loop; serial mode writes at once.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        parts: Mapping[str, PartReceiver],
        meta: Callable[[], dict[str, Any]],
        *,
        score: Callable[[], Score | None] = lambda: None,
        shards: Mapping[str, PartReceiver] | None = None,
        shard_parts: Callable[[], Mapping[str, Any]] | None = None,
        versions: VersionWriting | None = None,
        others: Callable[[], Mapping[str, Any]] = dict,
        segments: SegmentFolder | None = None,
        roles_state: Callable[[], dict[str, Any]] | None,
        in_thread: bool,
        spared: tuple[Path, Mapping[str, int]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spared, self._versions = spared, versions
        self._folder, self._receivers, self._meta, self._score = folder, parts, meta, score
        self._others = others
        self._roles_state, self._in_thread, self._clock = roles_state, in_thread, clock
        self._shards, self._shard_parts, self._segments = shards or {}, shard_parts, segments
        self._everyone = {
            **{(_POLICY, policy): receiver for policy, receiver in parts.items()},
            **{(REPLAY, label): receiver for label, receiver in self._shards.items()},
        }
        """All who send parts."""
        self._parts: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        """The number of the checkpoint that a sender's part is for, and the part."""
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        """What broke the thread; raised by the next poll."""
        self._insists_from = math.inf
        """Number of the checkpoint that must be written, and of later ones."""
        self._unwritten: tuple[dict[str, Any], int, Score | None] | None = None
        """What is to be written again."""
        self._retry_at = 0.0
        self.waits_since: float | None = None
        """Since when the last checkpoint cannot be written; None if it can, or was given up."""
        self._writing = 0
        self.asked = 0
        self.written = 0
        self.last: Path | None = None
        self.last_updates: int | None = None
        self.problem: str | None = None

    @property
    def is_idle(self) -> bool:
        """Whether everything asked for is written or given up."""
        return self.asked == self.written

    @property
    def is_writing(self) -> bool:
        """Whether a file is being written, which takes as long as the file system needs."""
        return self._thread is not None

    @property
    def lacking(self) -> list[str]:
        """Whose parts of the newest checkpoint that is wanted have not come; empty if it is written or given up."""
        if self.is_idle:
            return []
        here = {sender for sender, (number, _) in self._parts.items() if number == self.asked}
        return [
            f"the part of {kind} {name} for the last checkpoint" for kind, name in sorted(self._everyone.keys() - here)
        ]

    @property
    def has_taken_last(self) -> bool:
        """Whether all that goes into the last checkpoint has been taken."""
        return self._writing >= self._insists_from

    def ask(self) -> None:
        """Wants a checkpoint; at the end one that is under way is not enough, so another takes its place or follows."""
        self.asked += 1

    def insist(self) -> None:
        """The one asked for now is tried again if it cannot be written: there is no later one."""
        self._insists_from = self.asked

    def give_up(self) -> None:
        """What waits to be written is left."""
        self._insists_from = math.inf
        self._unwritten, self.waits_since = None, None
        self.written = self._writing

    def poll(self) -> bool:
        """Takes in parts; starts or finishes writing. True if anything moved."""
        busy = False
        if self._thread is not None and not self._thread.is_alive():
            self._thread.join()
            self._thread = None
            self._end_write()
            busy = True
        if self._unwritten is not None and self._thread is None and self._clock() >= self._retry_at:
            self._start(*self._unwritten)
            busy = True
        # A version that waits is memory: the trainers' next parts come when there is room.
        is_behind = self._versions is not None and self._versions.is_behind
        for sender, receiver in () if is_behind else self._everyone.items():
            if (part := receiver.poll()) is not None:
                self._take(sender, *part)
                busy = True
            # The next chunk is under way: not to be slept over.
            busy |= receiver.is_receiving
        if self._versions is not None:
            self._versions.poll()
        if self._thread is None and self._are_whole:
            self._begin()
            busy = True
        return busy

    def _take(self, sender: tuple[str, str], number: int, part: dict[str, Any]) -> None:
        if number != VERSION:
            self._parts[sender] = (number, part)
            return
        assert self._versions is not None, "a version that nobody asked for"
        self._versions.take(sender[1], part)

    @property
    def _are_whole(self) -> bool:
        """Whether all parts are here and of one checkpoint: if another was asked for meanwhile, some come again."""
        return len(self._parts) == len(self._everyone) and len({number for number, _ in self._parts.values()}) == 1

    def _begin(self) -> None:
        meta = self._meta()
        policies = {policy: self._parts[_POLICY, policy][1] for policy in self._receivers}
        # All are equal, see `_are_whole`.
        self._writing = max(number for number, _ in self._parts.values())
        # The first policy's numbers are the run's.
        counters = policies[next(iter(self._receivers))]["counters"]
        meta |= {name: counters[name] for name in ("updates", "steps", "agent_steps")}
        tree: dict[str, Any] = {"meta": _with_arrays(meta), "policies": policies}
        if self._shards:
            tree[REPLAY] = {label: self._parts[REPLAY, label][1] for label in self._shards}
        tree |= self._others()
        if self._roles_state is not None:
            tree["roles"] = self._roles_state()
        self._parts = {}
        self._start(tree, int(meta["updates"]), self._score())

    def _start(self, *arguments: Any) -> None:
        if self._in_thread:
            self._thread = threading.Thread(target=self._write_aside, args=arguments, name="checkpoint")
            self._thread.start()
        else:
            self._write(*arguments)
            self._end_write()

    def _end_write(self) -> None:
        """A write has ended; well, or it waits for its next try, or it is left."""
        if self._error is not None:
            raise self._error
        if self._unwritten is not None and self.has_taken_last:
            now = self._clock()
            self._retry_at = now + RETRY_SECONDS
            self.waits_since = now if self.waits_since is None else self.waits_since
            return
        self._unwritten, self.waits_since = None, None
        self.written = self._writing

    def _write_aside(self, tree: dict[str, Any], updates: int, score: Score | None) -> None:
        try:
            self._write(tree, updates, score)
        except Exception as error:
            self._error = error

    def _write(self, tree: dict[str, Any], updates: int, score: Score | None) -> None:
        self._unwritten = None
        if self._spared is not None and updates_of(tree) == self._spared[1]:
            self.last, self.last_updates = self._spared[0], updates
            return
        parts: Mapping[str, Any] | None = None
        try:
            parts = tree.get(REPLAY, {}) if self._shard_parts is None else self._shard_parts()
            whole = {**tree, REPLAY: whole_parts(parts)}
            if not whole[REPLAY]:
                del whole[REPLAY]
            self.last = self._folder.save(whole, updates, *(score or ()))
        except OSError as error:
            self._unwritten = (tree, updates, score)
            # What blocks that could not be written need is not known.
            where = not_written(self._folder.path, error, None if parts is None else _size(tree))
            self._say(f"checkpoint at update {updates} could not be written: {where}; {self._what_is_left()}")
            return
        self.last_updates = updates
        if self._segments is not None:
            self._segments.tidy(self._folder.files(), self.last, whole)
        if self._folder.detour is not None:
            self._say(f"checkpoint at update {updates} is in {self.last.parent}: {self._folder.detour}")
        elif lacks := problems_of(parts):
            self._say(f"checkpoint at update {updates} is without replay, of {'; of '.join(lacks)}")
        else:
            self.problem = None

    def _what_is_left(self) -> str:
        try:
            files = self._folder.files(patience=0.0)
        except (OSError, FileSystemLostError):
            return "whether there is an older one cannot be seen now"
        return "the last good one is kept" if files else "there is no older one"

    def _say(self, problem: str) -> None:
        if self.waits_since is None:
            log.warning(problem)
        self.problem = problem

    @property
    def problems(self) -> list[str]:
        """Why the newest checkpoint, and the newest version, are not where they should be."""
        found = [] if self._versions is None else self._versions.problems
        return [self.problem, *found] if self.problem else found

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for, and every version that came, is written or given up."""
        return self.is_idle and (self._versions is None or self._versions.is_idle)

    def close(self) -> None:
        """Waits for a file that is being written."""
        if self._thread is not None:
            self._thread.join()
        if self._versions is not None:
            self._versions.close()
        for receiver in self._everyone.values():
            receiver.close()


def updates_of(tree: Mapping[str, Any]) -> dict[str, int]:
    """Updates of each policy in a checkpoint."""
    return {name: int(policy["counters"]["updates"]) for name, policy in tree["policies"].items()}


def _size(tree: Mapping[str, Any]) -> int:
    """Bytes of all arrays; the file is a little larger."""
    return sum(_size(value) if isinstance(value, Mapping) else getattr(value, "nbytes", 8) for value in tree.values())


def _with_arrays(meta: Any) -> Any:
    """The same with arrays for lists."""
    match meta:
        case dict():
            return {name: _with_arrays(value) for name, value in meta.items()}
        case list():
            return np.asarray(meta, np.float64)
    return meta
