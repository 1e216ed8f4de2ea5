"""What a run of rock-paper-scissors played: the most likely choice of its versions in turn, and their average.

    python benchmarks/rock_paper_scissors.py runs/rps_fictitious runs/rps_self_play runs/rps_psro

NashConv of the average is what both sides together gain by a best response to it: 0 at the equilibrium, 2 for whoever
always chooses the same. Of a run with a table of payoffs it is also told for the mixtures of every round, which are
solved again from the table. The runs keep all their versions (`versions: {every_updates: 2, keep: null}`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from choices import chances
from numpy.typing import NDArray
from played_versions import rounds, version_networks

from srlhpc.league.game import Mixtures, nash_conv, symmetric
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.versions import version_files

CHOICES = "RPS"
GAME = symmetric(np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]))


def choices_of(run: RunPaths) -> dict[int, NDArray[np.float64]]:
    """Updates of each version of the first policy to how often it chooses what, `[3]`, oldest first."""
    policy = next(iter(version_files(run)))
    return {
        updates: chances(network, {"obs": torch.ones(1, 1)}, None)[0]
        for updates, network in version_networks(run, policy)
    }


def by_round(run: RunPaths, played: Mapping[int, NDArray[np.float64]]) -> list[float]:
    """NashConv of the mixtures that followed from the first 1, 2, ... versions; none without a table of payoffs."""
    found = []
    for pair in rounds(run):
        mixed = [sum(share * played[version] for version, share in side.items()) for side in pair]
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
        choices = choices_of(run)
        played = np.array(list(choices.values()))
        average = played.mean(axis=0)
        last = played[-1]
        print(
            f"{folder.name}: {len(played)} versions; NashConv of the average "
            f"{nash_conv(GAME, Mixtures(average, average)):.3f} ({', '.join(f'{share:.3f}' for share in average)}), "
            f"of the last {nash_conv(GAME, Mixtures(last, last)):.3f}; choices {changes(played)}"
        )
        if curve := by_round(run, choices):
            print(f"  NashConv of the mixtures of 1, 2, ... versions: {', '.join(f'{value:.3f}' for value in curve)}")


if __name__ == "__main__":
    main()
