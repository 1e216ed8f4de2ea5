"""A stream of copies between host and GPU, beside the stream that computes.

Only events order what a stream copies. The host's side of a copy is pinned memory, else the copy holds the caller up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol

import torch
from torch import Tensor

from srlhpc.data.layout import Array


class Event(Protocol):
    """A place in what was queued: reached when everything before it is done."""

    def query(self) -> bool:
        """Whether it is reached."""

    def synchronize(self) -> None:
        """Waits until it is."""


class CopyStream(ABC):
    """Copies that run beside computing."""

    @abstractmethod
    def record_event(self) -> Event:
        """The end of all computing queued so far."""

    @abstractmethod
    def copy(self, pairs: Iterable[tuple[Tensor, Tensor]], *, after: Event) -> Event:
        """Queues copies, (to, from) each, that start once `after` is reached; gives their end."""

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Computing that is queued from now on starts once `event` is reached. The caller goes on."""


class CudaCopyStream(CopyStream):
    """A CUDA stream of its own; computing is on the device's current stream.

    Tensors that it copies must live until the copy's event is reached: the allocator knows them by the stream that they
    were made on.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def record_event(self) -> torch.cuda.Event:
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    def copy(self, pairs: Iterable[tuple[Tensor, Tensor]], *, after: Event) -> torch.cuda.Event:
        assert isinstance(after, torch.cuda.Event)
        self._stream.wait_event(after)
        with torch.cuda.stream(self._stream):
            for target, source in pairs:
                target.copy_(source, non_blocking=True)
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record(self._stream)
        return done

    def wait(self, event: Event) -> None:
        assert isinstance(event, torch.cuda.Event)
        torch.cuda.current_stream(self._device).wait_event(event)


def copy_stream_to(device: torch.device) -> CopyStream | None:
    """A new stream; None for the CPU, where nothing is copied."""
    return CudaCopyStream(device) if device.type == "cuda" else None


class Transfer:
    """One copy on the device of the host's tensors, which stays for all uses of the batch."""

    def __init__(self, host: Mapping[str, Tensor], device: torch.device, stream: CopyStream) -> None:
        """`host` is pinned if `device` is a GPU."""
        self._host, self._stream = host, stream
        self._tensors = {name: torch.empty_like(tensor, device=device) for name, tensor in host.items()}
        self._free = stream.record_event()
        self._arrived: Event | None = None

    def begin(self) -> None:
        """The host's tensors are whole: sends them off."""
        pairs = [(self._tensors[name], tensor) for name, tensor in self._host.items()]
        self._arrived = self._stream.copy(pairs, after=self._free)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors on the device, for computing that is queued from now on."""
        assert self._arrived is not None, "nothing was sent off"
        self._stream.wait(self._arrived)
        return self._tensors

    def reuse(self) -> None:
        """The host's tensors may be overwritten from now on; the update that read those of the device is queued."""
        if self._arrived is not None:
            self._arrived.synchronize()
            self._arrived = None
        self._free = self._stream.record_event()


Groups = Mapping[str, Mapping[str, Tensor]]
"""Named tensors of several groups (`part_tensors`)."""


class PartCopy:
    """Host memory for one copy of a trainer's tensors."""

    def __init__(self, tensors: Groups, stream: CopyStream) -> None:
        """`tensors` are like those that will be copied."""
        self._stream = stream
        self._host = {
            group: {
                name: torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.device.type == "cuda")
                for name, tensor in named.items()
            }
            for group, named in tensors.items()
        }
        self._copied: Event | None = None
        self._kept: list[Tensor] = []

    def begin(self, tensors: Groups) -> dict[str, dict[str, Array]]:
        """The arrays that will hold the tensors as they are now, once `has_landed`, until the next `begin`."""
        # The device copies within itself in no time, so that the next update need not wait for the way to the host.
        kept = [(self._host[group][name], t.clone()) for group, named in tensors.items() for name, t in named.items()]
        self._copied = self._stream.copy(kept, after=self._stream.record_event())
        self._kept = [tensor for _, tensor in kept]
        return {group: {name: t.numpy() for name, t in named.items()} for group, named in self._host.items()}

    def has_landed(self) -> bool:
        """Whether the arrays are whole."""
        if self._copied is None or not self._copied.query():
            return False
        self._kept.clear()
        return True
