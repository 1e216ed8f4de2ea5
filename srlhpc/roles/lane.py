"""A stream of copies between host and GPU, beside the stream that computes.

Only marks order what a lane copies. The host's side of a copy is pinned memory, else the copy holds the caller up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor


class Mark(Protocol):
    """A place in what was queued: reached when everything before it is done."""

    def query(self) -> bool:
        """Whether it is reached."""

    def synchronize(self) -> None:
        """Waits until it is."""


class Lane(ABC):
    """Copies that run beside computing."""

    @abstractmethod
    def mark(self) -> Mark:
        """The end of all computing queued so far."""

    @abstractmethod
    def copy(self, pairs: Iterable[tuple[Tensor, Tensor]], *, after: Mark) -> Mark:
        """Queues copies, (to, from) each, that start once `after` is reached; gives their end."""

    @abstractmethod
    def wait(self, mark: Mark) -> None:
        """Computing that is queued from now on starts once `mark` is reached. The caller goes on."""


class CudaLane(Lane):
    """A CUDA stream of its own; computing is on the device's current stream.

    Tensors that it copies must live until the copy's mark is reached: the allocator knows them by the stream that they
    were made on.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    def copy(self, pairs: Iterable[tuple[Tensor, Tensor]], *, after: Mark) -> torch.cuda.Event:
        assert isinstance(after, torch.cuda.Event)
        self._stream.wait_event(after)
        with torch.cuda.stream(self._stream):
            for target, source in pairs:
                target.copy_(source, non_blocking=True)
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record(self._stream)
        return done

    def wait(self, mark: Mark) -> None:
        assert isinstance(mark, torch.cuda.Event)
        torch.cuda.current_stream(self._device).wait_event(mark)


def lane_to(device: torch.device) -> Lane | None:
    """A new lane; None for the CPU, where nothing is copied."""
    return CudaLane(device) if device.type == "cuda" else None
