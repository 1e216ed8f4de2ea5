"""Pictures of curves: returns of runs, and statistics of episodes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srlhpc.pictures.curves import Axis, Curve, confidence_band
from srlhpc.pictures.figures import DOTS_PER_INCH, new_figure
from srlhpc.pictures.statistics import Statistics
from srlhpc.specs.named_modules import Panel

_LABELS = {"steps": "trained steps", "seconds": "seconds of training", "episodes": "episodes"}
_LINE_STYLES = ("-", "--", ":", "-.")
_WIDTH = 7.0
"""Inches."""


def draw_returns(groups: Mapping[str, Sequence[Curve]], axis: Axis, out: Path) -> None:
    """Writes a picture with a line for each group of runs."""
    figure = new_figure(_WIDTH, 4.5)
    axes = figure.add_subplot()
    for name, curves in groups.items():
        _draw_group(axes, curves, f"{name}, {_whose(curves)}")
    axes.set_xlabel(_LABELS[axis])
    axes.set_ylabel("mean return of the last 100 episodes")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(out, dpi=DOTS_PER_INCH)


def draw_statistics(statistics: Statistics, axis: Axis, out: Path) -> None:
    """Writes a picture with the panels below each other; a colour is a statistic, a line style a group of runs."""
    figure = new_figure(_WIDTH, 0.8 + 0.2 * len(statistics.groups) + 1.8 * len(statistics.panels))
    rows = figure.subplots(len(statistics.panels), sharex=True, squeeze=False)[:, 0]
    styles = dict(zip(statistics.groups, itertools.cycle(_LINE_STYLES), strict=False))
    for axes, panel in zip(rows, statistics.panels, strict=True):
        _draw_panel(axes, panel, statistics, styles)
    rows[-1].set_xlabel(_LABELS[axis])
    figure.align_ylabels(rows)
    _name_groups(figure, statistics, styles)
    figure.savefig(out, dpi=DOTS_PER_INCH)


def _draw_panel(axes: Any, panel: Panel, statistics: Statistics, styles: Mapping[str, Any]) -> None:
    for group, style in styles.items():
        for place, (statistic, label) in enumerate(panel.statistics.items()):
            if curves := statistics.curves(group, statistic):
                _draw_group(axes, curves, label, color=f"C{place}", linestyle=style)
    axes.set_title(panel.title, loc="left", fontsize="medium")
    axes.set_ylabel(panel.unit)
    axes.grid(alpha=0.3)
    if len(panel.statistics) > 1:
        lines = {str(line.get_label()): line for line in axes.get_legend_handles_labels()[0][::-1]}
        # Above the panel, where no curve is.
        above = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.97), "ncols": len(lines), "frameon": False}
        axes.legend([lines[name] for name in panel.statistics.values()], panel.statistics.values(), **above)


def _name_groups(figure: Any, statistics: Statistics, styles: Mapping[str, Any]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color="black", linestyle=style) for style in styles.values()]
    names = [
        f"{name}, {_whose([next(iter(run.values())) for run in runs])}" for name, runs in statistics.groups.items()
    ]
    figure.legend(
        lines, names, loc="outside upper left", title="means of the last 100 episodes", alignment="left", frameon=False
    )


def _whose(curves: Sequence[Curve]) -> str:
    if len(curves) == 1:
        return f"seed {curves[0].seed}"
    what = "seeds" if len({curve.seed for curve in curves}) == len(curves) else "runs"
    return f"mean of {len(curves)} {what}, 95 % band"


def _draw_group(axes: Any, curves: Sequence[Curve], label: str, **style: Any) -> None:
    """A run's line; of several their mean, its confidence band and, thin, each of them."""
    if len(curves) == 1:
        axes.plot(curves[0].x, curves[0].values, label=label, **style)
        return
    band = confidence_band(curves)
    (line,) = axes.plot(band.x, band.mean, label=label, **style)
    axes.fill_between(band.x, band.low, band.high, alpha=0.2, color=line.get_color(), linewidth=0)
    for curve in curves:
        axes.plot(curve.x, curve.values, alpha=0.3, color=line.get_color(), linewidth=0.7)
