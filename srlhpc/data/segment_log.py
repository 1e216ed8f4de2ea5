"""Writes the blocks of a store into segments while others come in: each block once.

    pending --(as many as a file holds, or a checkpoint)--> being written --> written --(overwritten)--> forgotten
                                        being written --(disk full, say)--> pending

Blocks are written out of the store's own memory, so one that is being written may not be overwritten: whoever adds
blocks says so before (`make_room`), and waits then. What could not be written is tried again with the next checkpoint,
as long as the store has it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from srlhpc.data.full_disk import not_written
from srlhpc.data.segments import Run, Segment, append, begin_segment

log = logging.getLogger(__name__)


class SegmentLog:
    """The files of one store.

    Args:
        folder: where they go.
        label: of the role; their names begin with it.
        slots: blocks that the store keeps.
        file_blocks: blocks of a file.
        runs: the store's blocks from one number up to another, as they lie in its memory.
        in_thread: write beside the loop; else at once.
    """

    def __init__(
        self,
        folder: Path,
        label: str,
        *,
        slots: int,
        file_blocks: int,
        runs: Callable[[int, int], Iterable[Run]],
        in_thread: bool,
    ) -> None:
        self.folder = folder
        self._label, self._slots, self._file_blocks = label, slots, file_blocks
        self._runs, self._in_thread = runs, in_thread
        self._segments: list[Segment] = []
        self._open: Segment | None = None
        """The last one, while it grows."""
        self._next = 0
        """Number of the first block that is not written."""
        self._tried = 0
        """Number of the block before which the last try ended."""
        self._thread: threading.Thread | None = None
        self._done: tuple[list[Segment], Segment | None, int] | None = None
        self._error: Exception | None = None
        self.written_bytes = 0
        self.problem: str | None = None
        """Why the last write failed; None if it did not."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written; looks after a write that has ended."""
        if self._thread is not None and not self._thread.is_alive():
            self._join()
        return self._thread is None

    def go_on(self, segments: Sequence[Segment], inserted: int) -> None:
        """Begins with a store whose blocks up to number `inserted` are in those files; they do not grow any more."""
        self._segments, self._open = list(segments), None
        self._next = self._tried = inserted

    def make_room(self, number: int) -> None:
        """The block of that number is overwritten next; waits while it is being written."""
        if number < self._next:
            return
        self._join()
        # It could not be written, and is lost to checkpoints.
        self._next = max(self._next, number + 1)

    def added(self, inserted: int) -> None:
        """So many blocks have come in until now; writes if they make a file."""
        if inserted - max(self._next, self._tried) >= self._file_blocks and self.is_idle:
            self.write(inserted)

    def write(self, inserted: int) -> None:
        """Writes all blocks up to that number; call it only while idle. `problem` says afterwards whether it failed."""
        assert self._thread is None, "one write at a time"
        self._tried = inserted
        self._forget(inserted)
        if not self._in_thread:
            self._work(inserted)
            self._end()
            return
        self._thread = threading.Thread(target=self._work, args=(inserted,), name="segments")
        self._thread.start()

    def named(self, inserted: int) -> list[Segment] | None:
        """The files that hold what the store has kept of the blocks up to that number; None if they lack any."""
        number = max(0, inserted - self._slots)
        for segment in self._segments:
            if segment.first > number:
                return None
            number = segment.end
        return list(self._segments) if number >= inserted else None

    def _forget(self, inserted: int) -> None:
        """Leaves out files whose blocks are all overwritten."""
        self._segments = [segment for segment in self._segments if segment.end > inserted - self._slots]

    def _work(self, inserted: int) -> None:
        """Writes, in the thread if there is one; what comes of it is taken over by `_end`."""
        segments, growing, number = list(self._segments), self._open, self._next
        try:
            while number < inserted:
                if growing is None or growing.count >= self._file_blocks or growing.end != number:
                    growing = begin_segment(self.folder, self._label, number)
                end = min(inserted, number + self._file_blocks - growing.count)
                for run in self._runs(number, end):
                    longer = append(self.folder, growing, run)
                    self.written_bytes += longer.size - growing.size
                    segments = [*(known for known in segments if known.name != growing.name), longer]
                    growing, number = longer, longer.end
            self._error = None
        except Exception as error:
            self._error = error
        self._done = segments, growing, number

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._end()

    def _end(self) -> None:
        assert self._done is not None
        self._segments, self._open, self._next = self._done
        if self._error is None:
            self.problem = None
            return
        if not isinstance(self._error, OSError):
            raise self._error
        problem = not_written(self.folder, self._error)
        if self.problem is None:
            log.warning("blocks of %s could not be written: %s", self._label, problem)
        self.problem = problem

    def require_written(self) -> None:
        """Passes on what kept the last write from its end.

        Raises:
            OSError: the disk is full, say.
        """
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Waits for a write that is under way."""
        self._join()
