"""Curves of runs against steps, seconds or episodes, and their mean with a confidence band over seeds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srlhpc.data.atomic import read_json
from srlhpc.errors import UserError
from srlhpc.runs.paths import RunPaths

Axis = Literal["steps", "seconds", "episodes"]
_POINTS = 200
_RESAMPLES = 2000


@dataclass(frozen=True)
class Curve:
    """A mean over the last episodes of one run, such as its return, against steps, seconds or episodes."""

    run: str
    seed: int
    x: NDArray[np.float64]
    values: NDArray[np.float64]


class Band(NamedTuple):
    """A mean over seeds and its bootstrap confidence interval, each float [points]."""

    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def read_curve(paths: RunPaths, axis: Axis) -> Curve:
    """The returns in a run's metrics; half a line at the end of a run that goes on is left out.

    Raises:
        UserError: no episode has ended yet.
    """
    points = [(line[axis], line["return_mean"]) for line in metrics_lines(paths) if line.get("return_mean") is not None]
    if not points and _has_episodes(paths):
        raise UserError(f"run {paths.name} has no returns: no agent that is trained was in the game in any episode")
    if not points:
        raise UserError(f"run {paths.name} has no returns yet: no training episode has ended. Wait, or leave it out.")
    return _curve(paths, points)


def read_statistics(paths: RunPaths, axis: Axis) -> dict[str, Curve]:
    """The statistics of episodes in a run's metrics, by name.

    Raises:
        UserError: no episode has ended yet, or the environment gives no statistics.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for line in metrics_lines(paths):
        for name, value in line.get("episode", {}).items():
            points.setdefault(name, []).append((line[axis], value))
    if not points and _has_episodes(paths):
        raise UserError(
            f"run {paths.name}: its environment gives no statistics of episodes (Episode.metrics is empty), so there "
            "are none to draw. Draw its returns: leave out --statistics."
        )
    if not points:
        raise UserError(
            f"run {paths.name} has no statistics yet: no training episode has ended. Wait, or leave it out."
        )
    return {name: _curve(paths, found) for name, found in points.items()}


def _has_episodes(paths: RunPaths) -> bool:
    return any(line.get("episodes") for line in metrics_lines(paths))


def _curve(paths: RunPaths, points: Sequence[tuple[float, float]]) -> Curve:
    # Lines after the checkpoint that a run went on from are gone from its metrics, so the points of all its attempts
    # are one line.
    x, values = np.array(sorted(points, key=lambda point: point[0]), np.float64).T
    return Curve(paths.name, int((read_json(paths.run) or {}).get("seed", 0)), x, values)


def grouped(runs: Sequence[RunPaths]) -> dict[str, list[RunPaths]]:
    """Runs whose specs differ in nothing but the seed, by the job's name."""
    by_spec: dict[str, list[RunPaths]] = {}
    for paths in runs:
        by_spec.setdefault(_spec_without_seed(paths), []).append(paths)
    names: dict[str, list[RunPaths]] = {}
    for group in by_spec.values():
        job = str((read_json(group[0].run) or {}).get("job", group[0].name))
        names[job if job not in names else f"{job} ({group[0].name})"] = group
    return names


def confidence_band(curves: Sequence[Curve], *, confidence: float = 0.95, seed: int = 0) -> Band:
    """Mean over runs and percentile bootstrap interval of it (Efron 1979), runs resampled with replacement.

    Curves are interpolated linearly on a grid over all of them. Before its first point a run has its first value, and
    after its last, its last: a run that has reached its goal and ended does not leave the mean.

    Args:
        curves: one per run.
        confidence: of the interval.
        seed: of the resampling.
    """
    grid = np.linspace(min(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves), _POINTS)
    values = np.stack([np.interp(grid, curve.x, curve.values) for curve in curves])
    chosen = np.random.default_rng(seed).integers(len(curves), size=(_RESAMPLES, len(curves)))
    means = values[chosen].mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Band(grid, values.mean(axis=0), low, high)


def metrics_lines(paths: RunPaths) -> list[dict[str, Any]]:
    """The lines of a run's metrics that are whole."""
    try:
        text = paths.metrics.read_text()
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return [line for line in found if isinstance(line, dict)]


def _spec_without_seed(paths: RunPaths) -> str:
    try:
        return re.sub(r"(?m)^seed:.*\n", "", paths.spec.read_text())
    except OSError:
        return paths.name
