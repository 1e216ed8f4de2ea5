"""An update that diverged leaves everything as it was before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from srlhpc.algorithms.algorithm import DivergedError
from srlhpc.algorithms.flat_adam import FlatAdam


@contextmanager
def undone_if_diverged(module: nn.Module, *optimizers: FlatAdam) -> Iterator[None]:
    """Puts parameters, optimisers and buffers back where the block raises DivergedError.

    Args:
        module: whose buffers, such as statistics of returns, may move within an update.
        optimizers: of all parameters that may.
    """
    before = [optimizer.snapshot() for optimizer in optimizers]
    buffers = [buffer.clone() for buffer in module.buffers()]
    try:
        yield
    except DivergedError:
        for optimizer, snapshot in zip(optimizers, before, strict=True):
            optimizer.restore(snapshot)
        for buffer, earlier in zip(module.buffers(), buffers, strict=True):
            buffer.copy_(earlier)
        raise
