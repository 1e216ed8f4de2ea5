"""A server's queue without a GPU: everything is done at once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from srlhpc.roles.serving.device_rows import InferenceStream


class CountingStream(InferenceStream):
    """Counts the waits."""

    def __init__(self) -> None:
        self.finished = 0

    def computing(self) -> AbstractContextManager[object]:
        return nullcontext()

    def finish(self) -> None:
        self.finished += 1
