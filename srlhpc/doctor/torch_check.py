"""What torch sees on a rank, and whether ranks can sum over the network: by the same code as trainers."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any

import torch

from srlhpc.comm.mpi.world import MpiWorld
from srlhpc.comm.process_group import join_trainers

_NUMBERS = 1 << 10


def gpu_facts() -> dict[str, Any]:
    """What torch sees of the GPUs that this rank is bound to; a role of a run takes the first."""
    facts: dict[str, Any] = {"torch": torch.__version__, "built": torch.version.cuda or torch.version.hip, "seen": 0}
    try:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count:
            device = torch.device("cuda", 0)
            torch.cuda.set_device(device)
            torch.ones(1, device=device).sum().item()
            known = torch.cuda.get_device_properties(device)
            identity = str(getattr(known, "uuid", device.index))
            facts |= {"seen": count, "name": known.name, "device": f"cuda:{device.index}"}
            facts["identity"] = f"{socket.gethostname()} {identity}"
    except RuntimeError as error:
        facts["error"] = str(error).splitlines()[0]
    return facts


def all_reduce(world: MpiWorld, members: Sequence[int], device: str) -> str:
    """A sum over some ranks; `ok`, or what went wrong."""
    try:
        reducer = join_trainers(world, members, torch.device(device))
        numbers = torch.ones(_NUMBERS, device=device)
        for _ in reducer.sum(numbers):
            time.sleep(1e-4)
        least, most = numbers.min().item(), numbers.max().item()
        reducer.close()
    except Exception as error:
        return (str(error) or type(error).__name__).splitlines()[0]
    right = float(len(members))
    return "ok" if least == most == right else f"a sum of {right:g} ones is between {least:g} and {most:g}"
