"""What a run of rock-paper-scissors played: the most likely choice of its versions in turn, and their average.

    python benchmarks/rock_paper_scissors.py runs/rps_fictitious runs/rps_self_play

NashConv of the average is what both sides together gain by a best response to it: 0 at the equilibrium, 2 for whoever
always chooses the same. The runs keep all their versions (`versions: {every_updates: 2, keep: null}`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.league.game import Mixtures, nash_conv, symmetric
from srlhpc.playing import plan_of
from srlhpc.ranks.policies import build_policy, load_parameters
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.versions import version_files

CHOICES = "RPS"


def mixtures(run: RunPaths) -> NDArray[np.float64]:
    """How often each version of the first policy chooses what, `[versions, 3]`, oldest first."""
    policy, files = next(iter(version_files(run).items()))
    network = build_policy(plan_of(run), policy)
    found = []
    for file in files:
        load_parameters(network, read_checkpoint(file)["policies"][policy]["parameters"], str(file))
        rows = {"obs": torch.ones(3, 1)}
        with torch.inference_mode():
            evaluated = network.evaluate(  # type: ignore[attr-defined]
                {key: values[None] for key, values in rows.items()}, {}, torch.ones(1, 3, dtype=torch.bool),
                action_masks=None,
            )  # fmt: skip
            found.append(evaluated.distribution.log_prob(torch.arange(3)[None]).exp()[0].double().numpy())
    return np.array(found)


def changes(played: NDArray[np.float64]) -> str:
    """The most likely choice in turn, each once as long as it stays."""
    return "".join(choice for choice, _ in groupby(CHOICES[place] for place in played.argmax(axis=1)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    game = symmetric(np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]))
    for folder in parser.parse_args(arguments).runs:
        played = mixtures(RunPaths(folder))
        average = played.mean(axis=0)
        last = played[-1]
        print(
            f"{folder.name}: {len(played)} versions; NashConv of the average "
            f"{nash_conv(game, Mixtures(average, average)):.3f} ({', '.join(f'{share:.3f}' for share in average)}), "
            f"of the last {nash_conv(game, Mixtures(last, last)):.3f}; choices {changes(played)}"
        )


if __name__ == "__main__":
    main()
