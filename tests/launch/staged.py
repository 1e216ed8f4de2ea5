"""An environment that exists in job files only, with panels as its settings say, and runs of it to read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from srlhpc.environment import Environment
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.named_modules import EnvironmentSettings, Panel
from tests.launch.making_runs import make_run, settings

PANELS = {"Boxes": ("box_move", "box_lock"), "Ramps": ("ramp_move",)}


class Settings(EnvironmentSettings):
    """Panels by title: their statistics, which are their labels too."""

    panels: dict[str, tuple[str, ...]] = {}

    def statistics(self) -> Sequence[Panel]:
        return [Panel(title, "mean", {name: name for name in names}) for title, names in self.panels.items()]


def build(settings: Settings, num_environments: int, seed: int, *, render: bool = False) -> Environment:
    raise NotImplementedError


def staged_run(
    root: Path,
    episodes: Sequence[Mapping[str, float]],
    *,
    name: str = "a",
    panels: Mapping[str, Sequence[str]] = PANELS,
    seed: int = 3,
) -> RunPaths:
    """A run with a line of metrics for each of `episodes`, which are statistics; ten episodes apart."""
    job = settings({"factory": "tests.launch.staged", "panels": panels}, stop={"updates": 1}, seed=seed)
    paths = make_run(root, job, name)
    lines = [
        {"steps": 40 * n, "seconds": float(n), "episodes": 10 * n, "return_mean": 1.0, "episode": statistics}
        for n, statistics in enumerate(episodes, start=1)
    ]
    paths.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return paths
