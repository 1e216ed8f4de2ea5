"""Makes what evaluators need to play versions of policies against each other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.checkpoint_names import name_of, updates_of
from srlhpc.data.version_folder import kept_versions
from srlhpc.errors import UserError
from srlhpc.plan.evaluation_check import evaluated_sides, matchups
from srlhpc.plan.plan import Seat
from srlhpc.policies.policy import Policy
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.global_generators import OwnGenerators
from srlhpc.ranks.policies import build_policy, load_parameters
from srlhpc.roles.acting.matchups import Matchups, Met, PlayedSide
from srlhpc.roles.acting.player import Player
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.versions import version_files
from srlhpc.specs.experiment import ExperimentSpec


def build_matchups(context: RankContext, autocast: torch.dtype | None) -> Matchups | None:
    """Whom evaluators meet; None: all sides play as they are."""
    plan, paths = context.plan, context.paths
    spec = plan.spec.evaluators
    if spec.opponents is None:
        return None
    seats = evaluated_sides(plan)
    return Matchups(
        [PlayedSide(seat.name, seat.policy, plan.agents_of(seat)) for seat in seats],
        [Met(seats.index(found.side), found.opponent.policy, found.opponent.version) for found in matchups(plan)],
        spec.players,
        tags=plan.spec.versions.tags,
        kept=partial(_kept, context),
        trained=plan.trained_policies,
        network=partial(_network, context),
        load=partial(_load, paths),
        player=lambda made, policy, side: evaluating_player(plan.spec, made, policy, seats[side], autocast),
    )


def _network(context: RankContext, policy: str) -> Policy:
    # Built in the middle of a run, whose generators it must not seed anew.
    with OwnGenerators(0):
        return build_policy(context.plan, policy, context.paths)


def _kept(context: RankContext, policy: str, live: int) -> list[int]:
    """Versions before the one that is live that stay when it is written, whether it is already or not."""
    spec, files = context.plan.spec.versions, version_files(context.paths).get(policy, [])
    earlier = [updates for file in files if (updates := updates_of(file)) < live]
    written = [*earlier, *([live] if spec.is_due(live) else [])]
    return sorted(kept_versions(written, spec.keep, spec.tags.values()) - {live})


def _load(paths: RunPaths, network: Policy, policy: str, updates: int) -> bool:
    try:
        arrays = version_parameters(paths, policy, updates)
    except UserError:
        if version_file(paths, policy, updates).exists():
            raise
        # It was pruned since the round began.
        return False
    load_version(network, arrays, policy, updates)
    return True


def evaluating_player(
    spec: ExperimentSpec, network: Policy, policy: str, seat: Seat, autocast: torch.dtype | None
) -> Player:
    """A network of a policy that plays a seat in all environments of an evaluator."""
    exploration = spec.policies[policy].algorithm.explore_in_evaluation()
    return Player(
        network,
        seat.kind,
        seat.agents,
        spec.evaluators.environments,
        autocast,
        exploration,
        draws=spec.evaluators.draw_actions,
    )


def version_file(paths: RunPaths, policy: str, updates: int) -> Path:
    """Where a version is."""
    return paths.versions_of(policy) / name_of(updates)


def version_parameters(paths: RunPaths, policy: str, updates: int) -> Mapping[str, Any]:
    """Name to array of a version.

    Raises:
        UserError: it is damaged, or there no more.
    """
    tree = read_checkpoint(version_file(paths, policy, updates))
    parameters: Mapping[str, Any] = tree["policies"][policy]["parameters"]
    return parameters


def load_version(network: Policy, arrays: Mapping[str, Any], policy: str, updates: int) -> None:
    """Gives a network a version."""
    load_parameters(network, arrays, f"version {updates} of policy '{policy}'")
