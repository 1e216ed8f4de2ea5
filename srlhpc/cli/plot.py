"""`srlhpc plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from srlhpc.cli.options import open_root, root_option, say
from srlhpc.objects import UserError, missing_packages

if TYPE_CHECKING:
    from srlhpc.launch.curves import Axis, Curve

_LABELS = {"steps": "trained steps", "seconds": "seconds of training"}


@click.command("plot")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Picture: .png, .svg, .pdf."
)
@click.option("--x", "axis", type=click.Choice(["steps", "seconds"]), default="steps", help="The other axis.")
@root_option
def command(runs: tuple[str, ...], out: Path, axis: Literal["steps", "seconds"], root: str | None) -> None:
    """Draw the returns of RUNs.

    Runs whose specs differ in the seed only become one line, their mean, with a 95 % bootstrap confidence band.
    """
    from srlhpc.launch.curves import grouped, read_curve
    from srlhpc.launch.runs import find_run

    if missing := missing_packages({"matplotlib": "plot"}):
        raise UserError(f"plot needs {missing[0][0]}, which is not installed: pip install 'srlhpc[{missing[0][1]}]'")
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.absolute().parent}; make it first")
    folder = open_root(root)
    groups = grouped([find_run(folder, run) for run in dict.fromkeys(runs)])
    curves = {name: [read_curve(paths, axis) for paths in group] for name, group in groups.items()}
    draw(curves, axis, out)
    say(f"{out}: " + ", ".join(f"{name} ({len(lines)} run{'s' * (len(lines) > 1)})" for name, lines in curves.items()))


def draw(curves: dict[str, list[Curve]], axis: Axis, out: Path) -> None:
    """Writes the picture.

    Raises:
        UserError: the file's ending is no format of pictures.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    formats = canvas.get_supported_filetypes()
    if out.suffix[1:].lower() not in formats:
        raise UserError(
            f"--out {out}: '{out.suffix}' is no format of pictures; use one of {', '.join(sorted(formats))}"
        )
    axes = figure.add_subplot()
    for name, lines in curves.items():
        _draw_group(axes, name, lines)
    axes.set_xlabel(_LABELS[axis])
    axes.set_ylabel("mean return of the last 100 episodes")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(out, dpi=150)


def _draw_group(axes: Any, name: str, curves: list[Curve]) -> None:
    from srlhpc.launch.curves import confidence_band

    if len(curves) == 1:
        axes.plot(curves[0].x, curves[0].returns, label=f"{name}, seed {curves[0].seed}")
        return
    band = confidence_band(curves)
    what = "seeds" if len({curve.seed for curve in curves}) == len(curves) else "runs"
    (line,) = axes.plot(band.x, band.mean, label=f"{name}, mean of {len(curves)} {what}, 95 % band")
    axes.fill_between(band.x, band.low, band.high, alpha=0.2, color=line.get_color(), linewidth=0)
    for curve in curves:
        axes.plot(curve.x, curve.returns, alpha=0.3, color=line.get_color(), linewidth=0.7)
