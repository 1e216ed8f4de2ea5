"""GPUs of one rank of a check: what the node grants, and binding it as a rank of a run is bound."""

from __future__ import annotations

import os
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.doctor.reports import WorkFolder
from srlhpc.ranks.gpu_binding import GpuError, bind, device_files, own_gpus, shared_gpus, visible_gpus
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.gpu_shares import gpus_of_node


def bind_gpus(work: WorkFolder, rank: int) -> dict[str, Any]:
    """Narrows this process's environment to the GPUs of its rank, before anything loads torch.

    Returns:
        granted: how many the node gives; needed: how many its ranks were planned with; bound: how many this rank sees.
    """
    ranks, allocation = work.read_ranks(), (read_json(work.check) or {}).get("allocation")
    granted, needed = visible_gpus(os.environ, device_files()), 0
    if allocation is None:
        chosen = shared_gpus(granted, [each.needs_torch for each in ranks], rank)
    else:
        made = Allocation.from_json(allocation)
        beside = made.components[made.component_of(rank)].ranks_beside(rank)
        shares = [ranks[each].gpus for each in beside]
        needed = gpus_of_node(shares)
        try:
            chosen = own_gpus(granted, shares, beside.index(rank))
        except GpuError:
            chosen = ()
    bind(os.environ, chosen)
    return {"granted": len(granted), "needed": needed, "bound": len(chosen)}
