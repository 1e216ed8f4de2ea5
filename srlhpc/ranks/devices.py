"""Where a rank's networks compute, and in which arithmetic."""

from __future__ import annotations

import os

import torch

from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan
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


def autocast_dtype(plan: Plan) -> torch.dtype | None:
    """What networks compute in, if not float32."""
    return torch.bfloat16 if plan.spec.trainers.precision == "bfloat16" else None
