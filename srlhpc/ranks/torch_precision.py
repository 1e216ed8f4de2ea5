"""How torch computes on a GPU: settings that are made once a process."""

from __future__ import annotations

from typing import Literal

import torch

Precision = Literal["float32", "tf32", "bfloat16"]


def set_matmul_precision(device: torch.device, precision: Precision) -> None:
    """Products of float32 numbers are those that `trainers.precision` names, in layers of every sort.

    Torch itself would round those of convolutions and recurrent layers to tf32, and those of others not.
    """
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"


def enable_cudnn_benchmark(device: torch.device) -> None:
    """Tries all of cuDNN's algorithms at the first use of a shape: for processes that see few shapes, many times."""
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = True
