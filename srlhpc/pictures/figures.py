"""What all pictures of matplotlib share: their files and their looks. matplotlib is loaded where one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages

FORMATS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150


def check_matplotlib(purpose: str) -> None:
    """Refuses to draw without matplotlib; `purpose` is what needs it.

    Raises:
        UserError: it is not installed.
    """
    if missing := missing_packages({"matplotlib": "plot"}):
        raise UserError(
            f"{purpose} needs {missing[0][0]}, which is not installed: pip install 'srlhpc[{missing[0][1]}]'"
        )


def check_file(out: Path) -> None:
    """Refuses a file that no picture can be written to.

    Raises:
        UserError: there is no such folder, or the ending is no format of pictures.
    """
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.absolute().parent}; make it first")
    if out.suffix.lower() not in FORMATS:
        raise UserError(f"--out {out}: '{out.suffix}' is no format of pictures; use one of {', '.join(FORMATS)}")


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches that needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
