"""What Slurm granted against what torch sees. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.reports import RankReport
from srlhpc.errors import counted

GPUS = "GPUs"


def job_gpus(ranks: Sequence[RankReport], interpreter: str) -> Finding | None:
    """GPUs of a job's ranks; None if no rank got far enough to tell.

    Args:
        ranks: all of the check.
        interpreter: of the nodes, for the remedy.
    """
    users = [rank for rank in ranks if rank.rank.gpus > 0]
    if not users:
        return ok(GPUS, "none asked for, so networks run on the CPU")
    for rank in (rank for rank in users if rank.host):
        if rank.host["granted"] < rank.host["needed"]:
            return fault(
                GPUS,
                f"Slurm granted {rank.host['granted']} of the {rank.host['needed']} asked for on {rank.host['host']}",
                "correct partition, gpus_per_rank and gpu_type of that role; `sinfo -o '%P %G'` lists GPUs",
            )
    known = [rank for rank in users if rank.gpu]
    return next(filter(None, (_of_rank(rank, interpreter) for rank in known)), None) or _bound(known)


def _of_rank(rank: RankReport, interpreter: str) -> Finding | None:
    granted = f"Slurm granted {counted(rank.host['granted'], 'GPU')} on {rank.host['host']}"
    if rank.gpu["built"] is None:
        return warning(
            GPUS,
            f"{granted}, but this torch ({rank.gpu['torch']}) has no CUDA: trainers would compute on the CPU",
            f"install a torch with CUDA in the environment of {interpreter}",
        )
    if rank.gpu.get("error") or not rank.gpu["seen"]:
        why = rank.gpu.get("error") or "torch.cuda.is_available() is False"
        return fault(
            GPUS,
            f"{granted}, but torch {rank.gpu['torch']} (CUDA {rank.gpu['built']}) sees none: {why}",
            "does `nvidia-smi` work on that node, and is its driver new enough for this torch?",
        )
    if rank.gpu["seen"] != rank.host["bound"]:
        return warning(
            GPUS,
            f"{granted}, of which {rank.name} was given {rank.host['bound']}, but torch sees {rank.gpu['seen']}",
            "does the profile's setup change CUDA_VISIBLE_DEVICES?",
        )
    return None


def _bound(ranks: Sequence[RankReport]) -> Finding | None:
    """Whether each rank has a GPU of its own, as far as it asked for one."""
    if not ranks:
        return None
    by_device: dict[str, list[RankReport]] = {}
    for rank in ranks:
        by_device.setdefault(rank.gpu["identity"], []).append(rank)
    for sharers in by_device.values():
        if len(sharers) > max(1, math.floor(1 / sharers[0].rank.gpus)):
            return warning(
                GPUS,
                f"{len(sharers)} ranks take one GPU of {sharers[0].host['host']}, which would idle others",
                "raise gpus_per_rank, or leave CUDA_VISIBLE_DEVICES to Slurm",
            )
    names = sorted({rank.gpu["name"] for rank in ranks})
    gpus = counted(len(by_device), "GPU")
    return ok(GPUS, f"{gpus} ({', '.join(names)}) for {counted(len(ranks), 'rank')}, bound one by one")


def local_gpus(ranks: Sequence[RankReport]) -> Finding | None:
    """GPUs of this machine; None if no rank got far enough to tell."""
    known = [rank for rank in ranks if rank.gpu]
    if not known:
        return None
    gpu: Mapping[str, Any] = known[0].gpu
    files = known[0].host["granted"]
    if gpu["seen"]:
        return ok(GPUS, f"{counted(gpu['seen'], 'GPU')} ({gpu['name']}), seen by torch {gpu['torch']}")
    if not files:
        return ok(GPUS, "none here, so networks run on the CPU")
    why = gpu.get("error") or (f"built for CUDA {gpu['built']}" if gpu["built"] else "it has no CUDA")
    return warning(
        GPUS,
        f"{counted(files, 'GPU')} here, but torch {gpu['torch']} sees none ({why})",
        "install a torch with CUDA that fits the driver (`nvidia-smi` shows it)",
    )
