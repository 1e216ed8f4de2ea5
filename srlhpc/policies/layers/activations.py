"""Activation functions, the fastest way for each device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import Tensor

_WITHOUT_NUMPY: ContextVar[bool] = ContextVar("without_numpy", default=False)


@contextmanager
def without_numpy() -> Iterator[None]:
    """Inside, all is computed by torch: numbers that `torch.func` maps over have no memory that numpy could read."""
    before = _WITHOUT_NUMPY.set(True)
    try:
        yield
    finally:
        _WITHOUT_NUMPY.reset(before)


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent, element by element.

    On a CPU by numpy, whose vectorised tanh takes a tenth of the time of torch's, to within 2 units in the last place.
    """
    if x.device.type != "cpu" or x.dtype != torch.float32 or not x.is_contiguous() or _WITHOUT_NUMPY.get():
        return torch.tanh(x)
    if not (x.requires_grad and torch.is_grad_enabled()):
        return _by_numpy(x)
    y: Tensor = _Tanh.apply(x)  # type: ignore[no-untyped-call]
    return y


def _by_numpy(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    np.tanh(x.numpy(), out=y.numpy())
    return y


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = _by_numpy(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        result: Tensor = torch.ops.aten.tanh_backward(gradient, y)
        return result
