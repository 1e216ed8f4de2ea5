"""What benchmarks read of a run in which versions meet: their networks, and the mixtures of its table of payoffs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.import_path import load_module
from srlhpc.league.game import Game
from srlhpc.league.payoffs import PayoffTable
from srlhpc.playing import plan_of
from srlhpc.ranks.policies import build_policy, load_parameters
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.versions import version_files

Shares = dict[int, float]
"""Updates of a version to how often it is met."""


def version_networks(run: RunPaths, policy: str) -> Iterator[tuple[int, Any]]:
    """Updates of each version of a policy and its network, oldest first; the network is the same, loaded anew."""
    network = build_policy(plan_of(run), policy)
    for file in version_files(run)[policy]:
        load_parameters(network, read_checkpoint(file)["policies"][policy]["parameters"], str(file))
        yield updates_of(file), network


def rounds(run: RunPaths) -> Iterator[tuple[Shares, Shares]]:
    """Mixtures of both sides after the first versions of each, the second ones, and so on; none without a table.

    Games of a pairing are all played before its mixture is, and none after, so the table of an early round is a part of
    that of the last checkpoint.
    """
    matches = plan_of(run).spec.matches
    if matches is None:
        return
    state = read_checkpoint(max(run.checkpoints.glob("updates-*.h5")))["matches"].get("payoffs")
    if state is None:
        return
    mixtures = load_module(matches.rule.kind, "srlhpc.league.match_rules", ("mixtures",)).mixtures
    names = (list(map(str, state[name].tolist())) for name in ("rows", "columns"))
    table = PayoffTable.from_state(*names, state)
    rows, columns = (state[f"players-{side}"].tolist() for side in range(2))
    for count in range(1, min(len(rows), len(columns)) + 1):
        met = rows[:count], columns[:count]
        part = table.only(*(list(map(str, versions)) for versions in met))
        first, second = mixtures(matches.rule, Game(*part.mean_returns))
        yield dict(zip(met[0], first.tolist(), strict=True)), dict(zip(met[1], second.tolist(), strict=True))
