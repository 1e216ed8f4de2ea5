"""Where a rank's networks compute, and in which arithmetic."""

from __future__ import annotations

import os

import torch

from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.processor import has_bfloat16, processor_name
from srlhpc.ranks.torch_precision import set_matmul_precision


def device_of(plan: Plan, wanted: str) -> torch.device:
    """The first GPU that this rank sees, of those it was bound to, or the CPU."""
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UserError(
            "trainers.device or policy_servers.device is cuda, but torch sees no GPU here (CUDA_VISIBLE_DEVICES is "
            f"{os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')!r}); is it built for them?"
        )
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    set_matmul_precision(device, plan.spec.trainers.precision)
    return device


def autocast_dtype(context: RankContext, device: torch.device) -> torch.dtype | None:
    """What networks compute in, if not float32; a processor without bfloat16 computes in float32, which users hear."""
    if context.plan.spec.trainers.precision != "bfloat16":
        return None
    if device.type == "cpu" and not has_bfloat16():
        context.notes.append(
            f"trainers.precision is bfloat16, which {processor_name()} has no instructions for (AVX512-BF16 or AMX); "
            "networks compute in float32 there, which is faster"
        )
        return None
    return torch.bfloat16
