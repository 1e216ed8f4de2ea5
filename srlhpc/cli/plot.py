"""`srlhpc plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from srlhpc.cli.options import find_modules, open_root, root_option, say
from srlhpc.errors import UserError, counted
from srlhpc.runs.paths import RunPaths


@click.command("plot")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Picture: .png, .svg, .pdf; else a .png in this folder, named after the run.",
)
@click.option("--statistics", is_flag=True, help="Draw the statistics of episodes, in panels, instead of returns.")
@click.option(
    "--ratings", is_flag=True, help="Draw how strong the versions of RUNs are, and who beat whom, instead of returns."
)
@click.option("--stages", is_flag=True, hidden=True, help="The former word for --statistics.")
@click.option(
    "--x",
    "axis",
    type=click.Choice(["steps", "seconds", "episodes"]),
    help="The horizontal axis; by default steps, or episodes with --statistics.",
)
@root_option
def command(
    runs: tuple[str, ...],
    out: Path | None,
    statistics: bool,
    ratings: bool,
    stages: bool,
    axis: Literal["steps", "seconds", "episodes"] | None,
    root: str | None,
) -> None:
    """Draw the returns of RUNs, or with --statistics statistics of their episodes, as their environment names them.

    Runs whose specs differ in the seed only become one line, their mean, with a 95 % bootstrap confidence band.

    With --ratings each run is by itself: versions of its policies, by what evaluators found that have opponents, or by
    the table of payoffs of a rule such as psro.
    """
    from srlhpc.pictures.curves import grouped, read_curve
    from srlhpc.pictures.figures import check_file, check_matplotlib
    from srlhpc.pictures.plots import draw_returns, draw_statistics
    from srlhpc.pictures.statistics import statistics_of
    from srlhpc.runs.search import find_run

    if stages:
        say("warning: --stages is called --statistics now; it is still understood, write the new word")
    if ratings and (statistics or stages or axis is not None):
        raise UserError("--ratings: draws ratings over updates; leave out --statistics and --x")
    check_matplotlib("plot")
    if out is not None:
        check_file(out)
    folder = open_root(root)
    found = [find_run(folder, run) for run in dict.fromkeys(runs)]
    ending = "_ratings" if ratings else "_statistics" if statistics or stages else ""
    out = out or Path.cwd() / _file_name([paths.name for paths in found], ending)
    if ratings:
        _draw_ratings(found, out)
        return
    groups = grouped(found)
    if statistics or stages:
        axis = axis or "episodes"
        draw_statistics(statistics_of(groups, axis), axis, out)
    else:
        axis = axis or "steps"
        draw_returns({name: [read_curve(paths, axis) for paths in group] for name, group in groups.items()}, axis, out)
    say(f"wrote {out}: " + ", ".join(f"{name} ({counted(len(group), 'run')})" for name, group in groups.items()))


def _draw_ratings(runs: Sequence[RunPaths], out: Path) -> None:
    from srlhpc.pictures.ratings import draw_ratings, read_games

    for paths in runs:
        find_modules(paths)
    games = {paths.name: read_games(paths) for paths in runs}
    draw_ratings(games, out)
    told = (
        f"{name} ({counted(len(found.players), 'player')}, {counted(int(found.counts.sum()) // 2, 'game')})"
        for name, found in games.items()
    )
    say(f"wrote {out}: {', '.join(told)}")


def _file_name(runs: Sequence[str], ending: str) -> str:
    """A picture's name where none is given."""
    others = f"_and_{len(runs) - 1}_more" if len(runs) > 1 else ""
    return f"{runs[0]}{others}{ending}.png"
