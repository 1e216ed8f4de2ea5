"""Numbers that were computed on a device, on the host."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import torch
from torch import Tensor


def to_host_list(tensor: Tensor) -> Generator[None, None, list[Any]]:
    """What `tensor.tolist()` gives; yields while a GPU still computes it, so that streams are served meanwhile."""
    if tensor.device.type == "cuda":
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied.record(torch.cuda.current_stream(tensor.device))
        while not copied.query():  # type: ignore[no-untyped-call]
            yield
        tensor = host
    numbers: list[Any] = tensor.tolist()
    return numbers
