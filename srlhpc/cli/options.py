"""What several commands share: where runs are, and which one is meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from srlhpc.data.atomic import read_json
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.search import find_run, runs_root
from srlhpc.runs.shared_memory import sweep

_F = TypeVar("_F", bound=Callable[..., Any])


def root_option(function: _F) -> _F:
    """`--root D`."""
    option = click.option(
        "--root",
        metavar="DIR",
        type=click.Path(),
        help="Folder of all runs; else $SRLHPC_ROOT, else ./runs.",
    )
    return option(function)


def set_option(function: _F) -> _F:
    """`--set k=v`."""
    option = click.option(
        "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Override a setting of the spec; repeatable."
    )
    return option(function)


def open_root(root: str | None) -> Path:
    """The folder of all runs, after removing what killed runs left on this machine."""
    folder = runs_root(root)
    sweep(folder)
    return folder


def open_run(root: str | None, run: str) -> RunPaths:
    """The run that the user means.

    Raises:
        UserError: there is none, or several are meant.
    """
    paths = find_run(open_root(root), run)
    find_modules(paths)
    return paths


def find_modules(paths: RunPaths) -> None:
    """Lets modules that the run's spec names be found where it was started, here and in processes started from here."""
    folder = (read_json(paths.run) or {}).get("folder")
    if isinstance(folder, str) and folder not in sys.path:
        sys.path.append(folder)
        known = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = f"{known}{os.pathsep}{folder}" if known else folder


def say(message: str) -> None:
    """Prints a message for people, on standard error."""
    click.echo(message, err=True)
