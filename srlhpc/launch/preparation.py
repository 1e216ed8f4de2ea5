"""From a spec to what can start: its spaces, its plan, and on Slurm its allocation. One way for all who start ranks."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from srlhpc.errors import ClusterError, UserError
from srlhpc.launch.mpiexec import find_mpiexec, flavour
from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.plan.replay_sizes import replay_spec, store_bytes
from srlhpc.plan.roles import computing
from srlhpc.plan.sizes import kept_bytes, memory_bytes
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.commands import slurm_is_here
from srlhpc.slurm.node_order import in_node_order
from srlhpc.slurm.partitions import read_nodes
from srlhpc.slurm.placement import allocate
from srlhpc.slurm.start_outlook import shortage
from srlhpc.specs.cluster import ClusterProfile
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.probe import probe_spaces

Naming = Callable[[], AbstractContextManager[None]]
"""Makes what adds file and line to a UserError from inside: `naming_places` of what was read from a file."""


@dataclass(frozen=True)
class PreparedJob:
    """What a job on Slurm asks for, and what it will run."""

    plan: Plan
    profile: ClusterProfile
    allocation: Allocation


def prepare_plan(spec: ExperimentSpec, *, serial: bool = False, naming: Naming = nullcontext) -> Plan:
    """Looks at the environment's spaces and makes the plan.

    Args:
        spec: what the user wrote.
        serial: all roles in one process.
        naming: adds the places of the job file to refusals.

    Raises:
        UserError: the environment cannot be built, or the spec cannot work.
    """
    with naming():
        plan = make_plan(spec, probe_spaces(spec.environment), serial=serial)
        check_recordings(plan)
        return plan


def check_recordings(plan: Plan) -> None:
    """Refuses episodes that are not there or are of other agents.

    Raises:
        UserError: with the policy and the file.
    """
    for policy in plan.trained_policies:
        episodes = plan.spec.policies[policy].episodes
        if episodes is None:
            continue
        # What reads files is not loaded by all others.
        from srlhpc.data.recorded import check_episodes

        try:
            check_episodes(episodes.files, episodes.policy, policy, plan.kind_of(policy))
        except UserError as error:
            raise UserError(f"policies.{policy}.episodes: {error}") from None


def prepare_here(spec: ExperimentSpec, *, serial: bool, naming: Naming = nullcontext) -> Plan:
    """The plan of a run on this machine; what could not start is refused before anything is made.

    Raises:
        UserError: there is no mpiexec, no GPU where the spec asks for one, or too little memory; see `prepare_plan`.
    """
    check_launcher(serial)
    with naming():
        check_devices(spec)
    plan = prepare_plan(spec, serial=serial, naming=naming)
    with naming():
        check_memory(plan, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return plan


def prepare_job(
    spec: ExperimentSpec,
    profile: ClusterProfile,
    minutes: int,
    *,
    naming: Naming = nullcontext,
    naming_profile: Naming = nullcontext,
) -> PreparedJob:
    """The plan of a run on Slurm and what to ask Slurm for.

    Args:
        spec: what the user wrote.
        profile: of the cluster.
        minutes: time limit of the job.
        naming: adds the places of the job file to refusals.
        naming_profile: adds the places of the profile to refusals.

    Raises:
        UserError: the profile has no place for the ranks, or they could never start; see `prepare_plan`.
    """
    plan = prepare_plan(spec, naming=naming)
    with naming_profile():
        allocation = in_node_order(allocate(plan, profile, minutes), profile)
        check_can_start(allocation)
    return PreparedJob(plan, profile, allocation)


def prepare_again(spec: ExperimentSpec, allocation: Allocation, where: Path, run: str) -> Plan:
    """The plan inside a job, which must fit what the job was allocated for.

    Args:
        spec: of the run.
        allocation: of the job.
        where: the file of the spec.
        run: name of the run.

    Raises:
        UserError: it does not; see `prepare_plan`.
    """
    plan = prepare_plan(spec)
    if len(plan.ranks) != allocation.ranks:
        raise UserError(
            f"{where} needs {len(plan.ranks)} ranks, but the job was allocated for {allocation.ranks}; was it changed "
            f"after it was submitted? Resume: srlhpc resume {run}"
        )
    return plan


def check_launcher(serial: bool) -> None:
    """Refuses, before anything is made, what could not start its ranks.

    Raises:
        UserError: there is no mpiexec, or one of an unknown kind.
    """
    if not serial:
        flavour(find_mpiexec())


def check_devices(spec: ExperimentSpec, device_folder: Path = Path("/dev")) -> None:
    """Refuses GPUs that this machine does not have, without loading torch.

    Raises:
        UserError: a role asks for `cuda` and there is no device file of a GPU.
    """
    if any(device_folder.glob("nvidia[0-9]*")) or (device_folder / "kfd").exists():
        return
    for row, section in computing(spec):
        if section.device == "cuda":
            raise UserError(f"{row.section}.device: is 'cuda', but this machine has no GPU; use 'auto' or 'cpu'")


def check_memory(plan: Plan, machine_bytes: int) -> None:
    """Refuses a run whose slots, batches and replay alone take more memory than this machine has.

    Raises:
        UserError: with the setting that takes the most.
    """
    read = _read_bytes(plan)
    needed = sum([*memory_bytes(plan).values(), *read.values()])
    if needed <= machine_bytes:
        return
    shares = {
        f"policies.{policy}.replay.capacity: is {replay_spec(plan, policy).capacity}": len(plan.replays(policy))
        * store_bytes(plan, policy)
        for policy in plan.trained_policies
        if plan.replays(policy)
    }
    for policy in plan.trained_policies:
        kept = len(plan.trainers(policy)) * kept_bytes(plan, policy)
        rule = plan.spec.policies[policy].algorithm.kind
        fragments = plan.spec.policies[policy].batch.fragments
        # What a rule keeps are batches, so smaller ones are less.
        shares[
            f"policies.{policy}.batch.fragments: is {fragments}, and {rule} keeps {kept / 1e9:,.1f} GB of such batches"
        ] = kept
    for policy, size in read.items():
        shares[f"policies.{policy}.episodes: are {size / 1e9:,.1f} GB in memory, all files on each trainer"] = size
    most = max(shares, key=lambda share: shares[share])
    is_most = 2 * shares[most] > needed
    what = most if is_most else "actors.environments, actors.ring, policies.NAME.batch: are too large together"
    raise UserError(
        f"{what}; with it the run needs {needed / 1e9:,.1f} GB for blocks, batches and replay (spec --plan); "
        f"this machine has {machine_bytes / 1e9:,.1f} GB: lower it, or submit the job to a cluster"
    )


def _read_bytes(plan: Plan) -> dict[str, int]:
    """Bytes of recorded episodes that all trainers of a policy hold together."""
    from srlhpc.data.recorded import episodes_bytes

    found = {}
    for policy in plan.trained_policies:
        if (episodes := plan.spec.policies[policy].episodes) is not None:
            size = episodes_bytes(episodes.files, episodes.policy, policy, plan.kind_of(policy))
            found[policy] = size * len(plan.trainers(policy))
    return found


def check_can_start(allocation: Allocation) -> None:
    """Refuses a heterogeneous job that has too few nodes to ever start, as far as Slurm tells of them.

    Raises:
        UserError: it cannot.
    """
    if len(allocation.components) < 2 or not slurm_is_here():
        return
    try:
        missing = shortage(allocation, read_nodes())
    except ClusterError:
        # It will be told of by the submission itself.
        return
    if missing:
        raise UserError(
            f"roles: {missing}: it would never start. Ask for fewer ranks or CPUs, give roles that may share nodes "
            "equal options, or put some into another partition"
        )
