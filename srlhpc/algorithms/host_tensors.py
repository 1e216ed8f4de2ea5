"""Tensors in the host's memory, of types by the names that layouts give them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def zeros(shape: tuple[int, ...], dtype: str, *, pinned: bool = False) -> Tensor:
    """A tensor of zeros; `dtype` is numpy's name of its type."""
    return torch.zeros(shape, dtype=torch.from_numpy(np.empty(0, dtype)).dtype, pin_memory=pinned)
