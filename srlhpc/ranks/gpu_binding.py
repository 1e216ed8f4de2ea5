"""Which GPUs of its node a rank sees. The environment is given; nothing here loads a GPU library.

torch reads these variables once, when it is loaded, so they are set before. MPI may have started already
(`mpi_first`); it is told to leave GPUs alone.
Names are taken as they are granted: `0`, `GPU-8932f937-...`, `MIG-...`.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path

from srlhpc.errors import ClusterError, counted
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.plan.roles import computing
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.gpu_shares import gpu_places, gpus_of_node

CUDA, HIP, ROCR = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
_ALL = (CUDA, HIP, ROCR, "GPU_DEVICE_ORDINAL")
_NOTHING = ("", "-1", "NoDevFiles")


class GpuError(ClusterError):
    """The node gives fewer GPUs than planned."""

    kind = "gpu"


def device_files(folder: Path = Path("/dev")) -> int:
    """GPUs that have a device file here: NVIDIA's one each, AMD's a render node each beside /dev/kfd."""
    nvidia = len(list(folder.glob("nvidia[0-9]*")))
    return nvidia or (len(list((folder / "dri").glob("renderD*"))) if (folder / "kfd").exists() else 0)


def visible_gpus(environment: Mapping[str, str], device_files: int) -> tuple[str, ...]:
    """Names of the GPUs that a process was granted, in order.

    Args:
        environment: of the process.
        device_files: GPUs in /dev, which count if no variable says anything.
    """
    variable = _granting(environment)
    if variable is None:
        return tuple(str(number) for number in range(device_files))
    names = []
    for word in environment[variable].split(","):
        # CUDA sees nothing behind the first name that is none.
        if word.strip() in _NOTHING:
            break
        names.append(word.strip())
    return tuple(names)


def bound(environment: Mapping[str, str], chosen: Sequence[str]) -> dict[str, str]:
    """The environment of a rank that is to see these GPUs and no others; none if the list is empty."""
    kept = {key: value for key, value in environment.items() if key not in _ALL}
    if not chosen:
        # Empty and not left out: without a variable a process sees all GPUs of the node.
        return kept | {CUDA: "", HIP: ""}
    variable = _granting(environment) or CUDA
    if environment.get(ROCR, "") not in ("", environment.get(variable)):
        # AMD's hold one behind the other, and what ROCR leaves is numbered anew: Slurm sets all to the same, which
        # must not stay, but what a user has set apart must.
        kept |= {ROCR: environment[ROCR]}
    return kept | {variable: ",".join(chosen)}


def bind(environment: MutableMapping[str, str], chosen: Sequence[str]) -> None:
    """Changes an environment to `bound(environment, chosen)`."""
    narrowed = bound(environment, chosen)
    for variable in set(environment) - set(narrowed):
        del environment[variable]
    environment.update(narrowed)


def own_gpus(granted: Sequence[str], shares: Sequence[float], place: int) -> tuple[str, ...]:
    """The GPUs of one rank in a job that asked for them.

    Args:
        granted: names of the GPUs that the node gives.
        shares: GPUs of each rank on the node.
        place: of the rank among them.

    Raises:
        GpuError: fewer are granted than the ranks need.
    """
    needed = gpus_of_node(shares)
    if shares[place] and len(granted) < needed:
        raise GpuError(
            f"this node grants {len(granted)} of {counted(needed, 'GPU')} planned for its "
            f"{counted(len(shares), 'rank')} ({', '.join(granted) or 'none is visible'}); "
            "`srlhpc doctor --cluster NAME` looks at GPUs, "
            "`sinfo -N -o '%N %G'` shows what Slurm knows of each node. Leave the node out (`sbatch: {exclude: NODE}` "
            "in the cluster profile), or lower gpus_per_rank"
        )
    return tuple(granted[number] for number in gpu_places(shares)[place])


def shared_gpus(granted: Sequence[str], wanting: Sequence[bool], place: int) -> tuple[str, ...]:
    """The GPU of one rank on a machine without a batch system: one each in turn, shared where there are too few.

    Args:
        granted: names of the GPUs that there are.
        wanting: which ranks compute on a GPU.
        place: of the rank.
    """
    if not wanting[place] or not granted:
        return ()
    return (granted[sum(wanting[:place]) % len(granted)],)


def gpus_of_rank(
    plan: Plan, rank: int, allocation: Allocation | None, environment: Mapping[str, str], device_files: int
) -> tuple[str, ...] | None:
    """Names of the GPUs that a rank is to see; None: whatever there is, for nothing is known of it here.

    Args:
        plan: ranks and roles.
        rank: the one that asks.
        allocation: of the Slurm job; None: all ranks are on this machine.
        environment: of the rank, as it was started.
        device_files: GPUs in /dev.

    Raises:
        GpuError: the node grants fewer than planned.
    """
    granted = visible_gpus(environment, device_files)
    if allocation is None:
        wanting = [_computes_on_gpu(plan, each) for each in plan.ranks]
        is_unknown = wanting[rank] and not granted and _granting(environment) is None
        return None if is_unknown else shared_gpus(granted, wanting, rank)
    component = allocation.components[allocation.component_of(rank)]
    ranks = component.ranks_beside(rank)
    shares = [component.gpu_shares[each - component.first_rank] for each in ranks]
    return own_gpus(granted, shares, ranks.index(rank))


def _computes_on_gpu(plan: Plan, rank: RankPlan) -> bool:
    devices = {row.name: section.device for row, section in computing(plan.spec)}
    return any(devices.get(role.name, "cpu") != "cpu" for role in rank.roles)


def _granting(environment: Mapping[str, str]) -> str | None:
    """The variable that says what was granted. Slurm sets several, to the same."""
    return next((variable for variable in (CUDA, HIP, ROCR) if variable in environment), None)
