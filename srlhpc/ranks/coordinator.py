"""Makes the coordinator and the reporters from the plan. Free of torch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import srlhpc
from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_names import updates_of as updates_of_file
from srlhpc.data.segment_folder import SegmentFolder
from srlhpc.plan.lag_advice import lag_advice
from srlhpc.plan.lag_limits import max_policy_lag
from srlhpc.plan.plan import Plan
from srlhpc.plan.replay_sizes import is_in_checkpoints
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.inputs import checkpoint_path
from srlhpc.ranks.matchmaking import MATCHES
from srlhpc.roles.checkpoint_parts import PartReceiver
from srlhpc.roles.coordinating.checkpoint_schedule import CheckpointSchedule
from srlhpc.roles.coordinating.checkpointing import Checkpointing, updates_of
from srlhpc.roles.coordinating.coordinator import Coordinator, CoordinatorFiles
from srlhpc.roles.coordinating.live_timing import LiveTiming
from srlhpc.roles.coordinating.liveness import Liveness, RankRecord
from srlhpc.roles.coordinating.progress import LagLimit, Progress
from srlhpc.roles.coordinating.run_files import RunFiles, cut_metrics
from srlhpc.roles.coordinating.version_writing import VersionWriting
from srlhpc.roles.matchmaking.matchmaker import Matchmaker
from srlhpc.roles.reporter import Reporter
from srlhpc.roles.role import Role
from srlhpc.runs.checkpoints import checkpoint_folder
from srlhpc.runs.replay_checkpoint import ReplayResume, replay_resumes
from srlhpc.runs.versions import version_folder
from srlhpc.specs.patience import LAST_CHECKPOINT_SECONDS

REPORT_SECONDS = 0.25
COORDINATOR_SILENCE_SECONDS = 120.0
_RANKS_PER_SECOND = 2000.0
"""Reports that the coordinator takes without becoming busy; more ranks report less often."""


def build_coordinator(
    context: RankContext,
    roles_state: Callable[[], dict[str, Any]] | None = None,
    shard_parts: Callable[[], Mapping[str, Any]] | None = None,
    matchmaker: Matchmaker | None = None,
) -> Coordinator:
    """The coordinator; in a serial run `roles_state` gives the state of all roles, `shard_parts` that of replay."""
    plan, wiring, paths, attempt = context.plan, context.wiring, context.paths, context.attempt
    restored, spec = context.restored, plan.spec
    now = time.monotonic()
    meta = (restored or {}).get("meta", {})
    progress = Progress(
        plan.trained_policies[0],
        plan.spaces.frames_per_step,
        now,
        meta,
        is_evaluated=bool(plan.named("evaluator")),
        lag_limits={
            policy: LagLimit(max_policy_lag(plan, policy), lag_advice(plan, policy), bool(plan.replays(policy)))
            for policy in plan.trained_policies
        },
    )
    resumed = [] if restored is None else list(replay_resumes(restored, plan, paths.replay))
    # What was written after the checkpoint is trained, and written, once more.
    cut_metrics(paths.metrics, progress.steps if restored is not None else 0)
    described = read_json(attempt.attempt) or {}
    reports, commands = wiring.coordinator_ends()
    return Coordinator(
        attempt.number,
        spec.stop,
        CoordinatorFiles(attempt.outcome, attempt.stop, attempt.checkpoint),
        RunFiles(
            paths.status, paths.metrics, paths.reserve, attempt.folder, attempt.attempt, in_thread=not plan.serial
        ),
        reports,
        commands,
        Liveness(_records(plan, now), attempt.exits, attempt.failures, pulses=attempt.pulses),
        progress,
        _checkpointing(context, progress, roles_state, shard_parts, resumed, matchmaker),
        schedule=CheckpointSchedule(
            None if plan.serial else spec.checkpoint.every_seconds,
            time.monotonic(),
            first=restored is None and not plan.serial,
        ),
        last_checkpoint_seconds=float(described.get("last_checkpoint_seconds", LAST_CHECKPOINT_SECONDS)),
        timing=LiveTiming(None if plan.serial else spec.actors.inference.kind),
        warnings=[replay.text for replay in resumed if replay.is_empty],
        may_relieve=len(plan.trained_policies) > 1 and spec.trainers.ranks > 1,
        **({} if matchmaker is None else _watched(plan, matchmaker)),
    )


def _watched(plan: Plan, matchmaker: Matchmaker) -> dict[str, Any]:
    """What the coordinator asks the matchmaker, and tells it."""
    return {"matches": matchmaker.summary, "lost": lambda rank: matchmaker.forget(plan.addresses(rank))}


def _checkpointing(
    context: RankContext,
    progress: Progress,
    roles_state: Callable[[], dict[str, Any]] | None,
    shard_parts: Callable[[], Mapping[str, Any]] | None,
    resumed: Sequence[ReplayResume],
    matchmaker: Matchmaker | None,
) -> Checkpointing:
    """Who sends parts of checkpoints, what else goes into them, and where they are written."""
    plan, wiring, paths, kept = context.plan, context.wiring, context.paths, context.plan.spec.checkpoint
    keeping = [role for role in plan.named("replay") if is_in_checkpoints(plan, role.policy or "")]
    text = paths.spec.read_text()
    described = {"spec": text, "versions": library_versions()}
    return Checkpointing(
        checkpoint_folder(paths, kept.keep, kept.keep_best),
        {policy: PartReceiver(wiring.part_inbox(plan.trainers(policy)[0])) for policy in plan.trained_policies},
        lambda: progress.to_meta(time.monotonic()) | described,
        score=lambda: progress.score,
        roles_state=roles_state,
        shards={} if plan.serial else {role.label: PartReceiver(wiring.part_inbox(role)) for role in keeping},
        shard_parts=shard_parts,
        versions=_version_writing(context, described, matchmaker),
        others=dict if matchmaker is None else lambda: {MATCHES: matchmaker.results_state()},
        segments=SegmentFolder(paths.replay, [role.label for role in keeping]),
        spared=_spared(context) if any(replay.leaves_some for replay in resumed) else None,
        in_thread=not plan.serial,
    )


def _version_writing(
    context: RankContext, described: Mapping[str, Any], matchmaker: Matchmaker | None
) -> VersionWriting | None:
    """What writes versions, if there are to be any; later ones than where the run goes on from are removed."""
    plan, restored = context.plan, context.restored
    folders = {policy: version_folder(context.paths, policy, plan.spec.versions) for policy in plan.trained_policies}
    reached = {} if restored is None else updates_of(restored)
    for policy, folder in folders.items():
        folder.remove_later(reached.get(policy, -1))
        if matchmaker is not None:
            there = [updates_of_file(file) for file in folder.files()]
            matchmaker.begin(policy, [updates for updates in there if updates <= reached.get(policy, -1)])
    if not plan.spec.versions.are_wanted:
        return None
    return VersionWriting(folders, lambda: described, in_thread=not plan.serial, user=matchmaker)


def _spared(context: RankContext) -> tuple[Path, Mapping[str, int]]:
    """File of the checkpoint that the run goes on from, and updates of each policy there."""
    path, tree = checkpoint_path(context.paths, context.attempt), context.restored
    assert path is not None
    assert tree is not None
    return path, updates_of(tree)


def _records(plan: Plan, now: float) -> list[RankRecord]:
    return [
        RankRecord(
            rank.rank,
            "serial-0" if plan.serial else role.label,
            role="serial" if plan.serial else role.name,
            role_names={each.label: each.name for each in rank.roles},
            is_essential=role.row.is_essential,
            one_must_live=role.row.one_must_live,
            address=role.address,
            silence_limit_seconds=math.inf if plan.serial else role.row.silence_seconds,
            heard_at=now,
        )
        for rank in plan.ranks
        if (role := plan.reporting_role(rank.rank)) is not None
    ]


def build_reporter(context: RankContext, roles: Sequence[Role]) -> Reporter:
    """The reporter of the rank."""
    plan, rank = context.plan, context.here.rank
    reporting_role = plan.reporting_role(rank)
    assert reporting_role is not None
    reports, commands = context.wiring.reporter_ends(reporting_role)
    interval = max(REPORT_SECONDS, len(plan.ranks) / _RANKS_PER_SECOND)
    return Reporter(
        rank,
        roles,
        reports,
        commands,
        addresses={other.rank: plan.addresses(other.rank) for other in plan.ranks},
        interval_seconds=None if plan.serial else interval,
        silence_seconds=COORDINATOR_SILENCE_SECONDS,
        notes=context.notes,
    )


def library_versions() -> dict[str, str]:
    """Versions of the libraries that a checkpoint's numbers may depend on."""
    versions = {"srlhpc": srlhpc.__version__}
    for name in ("numpy", "torch", "h5py", "mpi4py"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions
