"""The way of rows between a server's messages and the device of its network.

Letters: N rows of one batch, at most those of all groups of the server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor

from srlhpc.data.layout import Array


class DeviceRows(ABC):
    """Brings the rows of requests to the device and the network's answers back."""

    @abstractmethod
    def computing(self) -> AbstractContextManager[object]:
        """All of the server's work on the device is queued inside."""

    @abstractmethod
    def to_device(self, name: str, parts: Sequence[Array]) -> Tensor:
        """Parts, each `[n, ...]`, one after the other: `[N, ...]`. Each name is used once a batch."""

    @abstractmethod
    def to_host(self, tensors: Mapping[str, Tensor]) -> dict[str, Array]:
        """Arrays `[N, ...]` that hold until the next batch, floats as float32. All that was queued before has ended."""


class HostDeviceRows(DeviceRows):
    """The device is the CPU: rows stay where they are."""

    def computing(self) -> AbstractContextManager[object]:
        return nullcontext()

    def to_device(self, name: str, parts: Sequence[Array]) -> Tensor:  # noqa: ARG002
        return torch.from_numpy(parts[0] if len(parts) == 1 else np.concatenate(parts))

    def to_host(self, tensors: Mapping[str, Tensor]) -> dict[str, Array]:
        return {name: _narrow(tensor).numpy() for name, tensor in tensors.items()}


class InferenceStream(ABC):
    """Where a server's work on a device is queued."""

    @abstractmethod
    def computing(self) -> AbstractContextManager[object]:
        """What is computed inside is queued here."""

    @abstractmethod
    def finish(self) -> None:
        """Waits until all that was queued has ended."""


class CudaInferenceStream(InferenceStream):
    """A CUDA stream of its own that goes before others: where a trainer acts too, actors do not wait for updates."""

    def __init__(self, device: torch.device) -> None:
        """What the device computes with was made on its current stream before."""
        self._stream = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream(device))

    def computing(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self._stream)

    def finish(self) -> None:
        self._stream.synchronize()


class QueuedDeviceRows(DeviceRows):
    """The device works through a queue: rows pass through pinned memory, and the host waits once a batch.

    That wait is also what lets the memory be used again.
    """

    def __init__(self, device: torch.device, most: int, queue: InferenceStream) -> None:
        """`most` is the largest N."""
        self._device, self._most, self._queue = device, most, queue
        self._memory: dict[str, Tensor] = {}

    def computing(self) -> AbstractContextManager[object]:
        return self._queue.computing()

    def to_device(self, name: str, parts: Sequence[Array]) -> Tensor:
        rows = sum(len(part) for part in parts)
        first = torch.from_numpy(parts[0])
        host = self._host(f"in {name}", first)[:rows]
        np.concatenate(parts, out=host.numpy())
        return host.to(self._device, non_blocking=True)

    def to_host(self, tensors: Mapping[str, Tensor]) -> dict[str, Array]:
        found = {}
        for name, tensor in tensors.items():
            narrow = _narrow(tensor)
            host = self._host(f"out {name}", narrow)[: len(narrow)]
            host.copy_(narrow, non_blocking=True)
            found[name] = host
        self._queue.finish()
        return {name: host.numpy() for name, host in found.items()}

    def _host(self, name: str, like: Tensor) -> Tensor:
        """Memory for the most rows that are like these."""
        if name not in self._memory:
            shape = (self._most, *like.shape[1:])
            self._memory[name] = torch.empty(shape, dtype=like.dtype, pin_memory=self._device.type == "cuda")
        return self._memory[name]


def rows_of(device: torch.device, most: int) -> DeviceRows:
    """The way to a device for at most so many rows."""
    return QueuedDeviceRows(device, most, CudaInferenceStream(device)) if device.type == "cuda" else HostDeviceRows()


def _narrow(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor
