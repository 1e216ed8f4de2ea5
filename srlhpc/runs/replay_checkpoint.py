"""What a checkpoint holds of replay: whether it fits a plan, and whether the files that it names are there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from srlhpc.data.segment_folder import REPLAY, named_files, segments_of
from srlhpc.data.segments import require_length, verify
from srlhpc.errors import UserError, counted
from srlhpc.plan.layouts import block_layout
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.plan.replay_sizes import is_in_checkpoints, replay_spec, shard_blocks

Part = Mapping[str, Any]


def identity(plan: Plan, replay: RolePlan) -> dict[str, Any]:
    """What a part says of the shard that it is of, beside what is in it."""
    policy = replay.policy or ""
    return {
        "policy": policy,
        "index": replay.index,
        "shards": len(plan.replays(policy)),
        "groups": len(plan.groups),
        "layout": block_layout(plan, policy).digest,
    }


def saved_shards(tree: Mapping[str, Any], policy: str) -> list[Part]:
    """The parts of a policy's shards, in their order; none if not all of them are there."""
    found = {int(part["index"]): part for part in tree.get(REPLAY, {}).values() if part["policy"] == policy}
    shards = [found[index] for index in sorted(found)]
    return shards if shards and len(shards) == shards[0]["shards"] else []


def why_empty(tree: Mapping[str, Any], plan: Plan, policy: str, folder: Path) -> str | None:
    """Why a policy's replay starts empty in a run that goes on from a checkpoint; None if it does not.

    Args:
        tree: the checkpoint.
        plan: of the run that goes on.
        policy: one with replay.
        folder: where the files of blocks are.

    Raises:
        FileSystemLostError: the file system fails for too long.
    """
    shards = saved_shards(tree, policy)
    if not shards:
        return "the checkpoint holds nothing of it" + (
            "" if is_in_checkpoints(plan, policy) else " (with replay.checkpoint: true later ones will)"
        )
    first = shards[0]
    if first["groups"] != len(plan.groups):
        return f"it was kept of {counted(int(first['groups']), 'group')}, and there are {len(plan.groups)} now"
    if first["layout"] != block_layout(plan, policy).digest:
        return "its blocks have another layout (actors.environments, agents, replay.block_steps or arrays of records)"
    return _missing(shards, folder)


def _missing(shards: Sequence[Part], folder: Path) -> str | None:
    """Which file of blocks is missing or cut off, of those that some parts name; None if none is."""
    try:
        for part in shards:
            for segment in segments_of(part):
                require_length(folder, segment)
    except UserError as error:
        return str(error)
    return None


def verify_files(tree: Mapping[str, Any], folder: Path) -> None:
    """Reads every block that a checkpoint names.

    Raises:
        FileSystemLostError: the file system fails for too long.
        UserError: a file is missing, cut off or damaged.
    """
    for part in tree.get(REPLAY, {}).values():
        for segment in segments_of(part):
            verify(folder, segment)


def check_files(tree: Mapping[str, Any], folder: Path) -> None:
    """Refuses a checkpoint whose blocks are not whole: an exact resume needs all of it.

    Raises:
        FileSystemLostError, UserError: as `verify_files`.
    """
    try:
        verify_files(tree, folder)
    except UserError as error:
        raise UserError(
            f"{error}. A serial run goes on with all of its replay or not at all; `srlhpc fork RUN` starts a "
            "run over MPI from this checkpoint, and fills replay anew"
        ) from None


def copy_files(tree: Mapping[str, Any], source: Path, target: Path) -> None:
    """Gives another run the files of blocks that a checkpoint names, as links if both are on one disk.

    Files only grow, so either run goes on as if alone. One that is missing is left out; `why_empty` says so.
    """
    for name in named_files(tree):
        target.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            try:
                os.link(source / name, target / name)
            except OSError:
                shutil.copyfile(source / name, target / name)


class ReplayResume(NamedTuple):
    """What happens with a policy's replay at a resume."""

    text: str
    is_empty: bool
    start_steps: int
    """Steps that come in before it is drawn from."""
    leaves_some: bool
    """Whether the checkpoint holds some that this run cannot take over."""


def replay_resumes(tree: Mapping[str, Any], plan: Plan, folder: Path) -> Iterator[ReplayResume]:
    """What happens with the replay of each policy that has one.

    Args:
        tree: the checkpoint that the run goes on from.
        plan: of the run that goes on.
        folder: where the files of blocks are.

    Raises:
        FileSystemLostError: the file system fails for too long.
    """
    for policy in plan.trained_policies:
        if not plan.replays(policy):
            continue
        start, shards = replay_spec(plan, policy).start_steps, saved_shards(tree, policy)
        reason = why_empty(tree, plan, policy, folder)
        leaves_some = reason is not None and bool(shards) and _missing(shards, folder) is None
        if reason is None:
            stores = [part["store"] for part in shards]
            kept = sum(min(int(store["inserted_blocks"]), len(store["generations"])) for store in stores)
            room = shard_blocks(plan, policy) * len(plan.replays(policy))
            said = f"goes on with {counted(min(kept, room), 'block')}"
            if room < kept:
                said += f", the newest of {kept:,} in the checkpoint"
        else:
            said = f"starts empty: {reason}; training goes on when {counted(start, 'step')} came in"
        if leaves_some:
            said += ", and until then the checkpoint stays as it is, with what it holds of replay"
        yield ReplayResume(f"replay of policy {policy} {said}", reason is not None, start, leaves_some)
