"""What a run of rock-paper-scissors played: the most likely choice of its versions in turn, and their average.

    python benchmarks/rock_paper_scissors.py runs/rps_fictitious runs/rps_self_play runs/rps_psro

NashConv of the average is what both sides together gain by a best response to it: 0 at the equilibrium, 2 for whoever
always chooses the same. Of a run with a table of payoffs it is also told for the mixtures of every round, which are
solved again from the table. The runs keep all their versions (`versions: {every_updates: 2, keep: null}`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from choices import chances
from numpy.typing import NDArray
from psro_rounds import table_rounds

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.league.game import Mixtures, nash_conv, symmetric
from srlhpc.playing import plan_of
from srlhpc.ranks.policies import build_policy, load_parameters
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.versions import version_files

CHOICES = "RPS"
GAME = symmetric(np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]))


def mixtures(run: RunPaths) -> NDArray[np.float64]:
    """How often each version of the first policy chooses what, `[versions, 3]`, oldest first."""
    policy, files = next(iter(version_files(run).items()))
    network = build_policy(plan_of(run), policy)
    found = []
    for file in files:
        load_parameters(network, read_checkpoint(file)["policies"][policy]["parameters"], str(file))
        found.append(chances(network, {"obs": torch.ones(1, 1)}, None)[0])
    return np.array(found)


def rounds(run: RunPaths, played: NDArray[np.float64]) -> list[float]:
    """NashConv of the mixtures that followed from the first 1, 2, ... versions; none without a table of payoffs."""
    plan, versions = plan_of(run), [updates_of(file) for file in next(iter(version_files(run).values()))]
    state = read_checkpoint(max(run.checkpoints.glob("updates-*.h5")))["matches"].get("payoffs")
    if state is None:
        return []
    assert plan.spec.matches is not None
    found = []
    for pair in table_rounds(state, plan.spec.matches.rule):
        mixed = [sum(share * played[versions.index(version)] for version, share in side.items()) for side in pair]
        found.append(nash_conv(GAME, Mixtures(*mixed)))
    return found


def changes(played: NDArray[np.float64]) -> str:
    """The most likely choice in turn, each once as long as it stays."""
    return "".join(choice for choice, _ in groupby(CHOICES[place] for place in played.argmax(axis=1)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    for folder in parser.parse_args(arguments).runs:
        run = RunPaths(folder)
        played = mixtures(run)
        average = played.mean(axis=0)
        last = played[-1]
        print(
            f"{folder.name}: {len(played)} versions; NashConv of the average "
            f"{nash_conv(GAME, Mixtures(average, average)):.3f} ({', '.join(f'{share:.3f}' for share in average)}), "
            f"of the last {nash_conv(GAME, Mixtures(last, last)):.3f}; choices {changes(played)}"
        )
        if by_round := rounds(run, played):
            print(
                f"  NashConv of the mixtures of 1, 2, ... versions: {', '.join(f'{value:.3f}' for value in by_round)}"
            )


if __name__ == "__main__":
    main()
