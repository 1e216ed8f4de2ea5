"""How far the mixtures of a run's table of payoffs are from an equilibrium, round by round; OpenSpiel judges.

    python benchmarks/poker.py runs/kuhn_psro runs/leduc_psro

For games of two players with information states, of which each is one policy's seat. Every version becomes a table of
what it does at each information state, the versions of a round are mixed as the run met them, and OpenSpiel says
NashConv: what both sides together gain by best responses.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
import torch
from choices import chances
from open_spiel.python import policy as spiel_policy
from open_spiel.python.algorithms import exploitability, policy_aggregator
from played_versions import Shares, rounds, version_networks

from srlhpc.playing import plan_of
from srlhpc.runs.paths import RunPaths


def tables(run: RunPaths, game: Any, policy: str, seat: int) -> dict[int, Any]:
    """Updates of every version of a policy to what it does at each information state of its seat."""
    found = {}
    for updates, network in version_networks(run, policy):
        table = spiel_policy.TabularPolicy(game, players=[seat])
        shape = network.kind.observations["obs"].shape
        seen = np.array([state.information_state_tensor(seat) for state in table.states], np.float32)
        observations = {"obs": torch.from_numpy(seen.reshape(-1, *shape))}
        if "seat" in network.kind.observations:
            place = np.zeros((len(seen), *network.kind.observations["seat"].shape), np.float32)
            place[:, seat] = 1.0
            observations["seat"] = torch.from_numpy(place)
        masks = torch.from_numpy(table.legal_actions_mask.astype(bool))
        table.action_probability_array[:] = chances(network, observations, masks)
        found[updates] = table
    return found


def nash_conv(game: Any, players: Sequence[dict[int, Any]], mixed: Sequence[Shares]) -> float:
    """What both sides together gain by best responses to their mixtures."""
    policies = [[table[version] for version in shares] for table, shares in zip(players, mixed, strict=True)]
    weights = [list(shares.values()) for shares in mixed]
    whole = policy_aggregator.PolicyAggregator(game).aggregate([0, 1], policies, weights)
    return float(exploitability.nash_conv(game, whole))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    for folder in parser.parse_args(arguments).runs:
        run = RunPaths(folder)
        plan = plan_of(run)
        game = pyspiel.load_game(plan.spec.environment.game)  # type: ignore[attr-defined]
        players = [tables(run, game, seat.policy, place) for place, seat in enumerate(plan.seats)]
        curve = [nash_conv(game, players, mixed) for mixed in rounds(run)]
        print(f"{folder.name}: NashConv of 1, 2, ... versions a side: {', '.join(f'{value:.3f}' for value in curve)}")


if __name__ == "__main__":
    main()
