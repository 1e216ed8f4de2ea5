"""`srlhpc checkpoint`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from srlhpc.errors import UserError


@click.group("checkpoint")
def command() -> None:
    """What is inside a checkpoint, and whether it is whole."""


@command.command("show")
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> None:
    """Print what is in FILE: values, and type and shape of arrays."""
    from srlhpc.data.checkpoint import read_checkpoint

    tree = read_checkpoint(file)
    click.echo(f"{file}: {file.stat().st_size:,} bytes, whole", err=True)
    click.echo("\n".join(lines(tree)))


@command.command("verify")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
def verify(files: tuple[Path, ...]) -> None:
    """Say of each of FILES whether it is whole; exit code 2 if one is not.

    A file in its run's folder is whole only with the blocks of replay that it names.
    """
    broken = 0
    for file in files:
        try:
            click.echo(f"{file}: {_verified(file)}")
        except UserError as error:
            broken += 1
            click.echo(str(error))
    if broken:
        sys.exit(2)


def _verified(file: Path) -> str:
    """What is whole.

    Raises:
        UserError: what is not.
    """
    from srlhpc.data.checkpoint import read_checkpoint
    from srlhpc.data.segment_folder import named_files
    from srlhpc.runs.paths import RunPaths
    from srlhpc.runs.replay_checkpoint import verify_files

    tree = read_checkpoint(file)
    if not named_files(tree):
        return "whole"
    paths = RunPaths(file.absolute().parent.parent)
    if file.absolute().parent != paths.checkpoints or not paths.run.exists():
        return "whole; it names blocks of replay, which lie in its run's folder and were not looked at"
    try:
        verify_files(tree, paths.replay)
    except UserError as error:
        raise UserError(f"{file}: the replay that it names is not whole: {error}") from None
    return "whole, with the replay that it names"


def lines(tree: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A checkpoint's tree, indented."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}/"
            yield from lines(value, indent + "  ")
        elif isinstance(value, str) and "\n" in value:
            yield f"{indent}{key}:"
            yield from (f"{indent}  | {line}" for line in value.rstrip().splitlines())
        elif hasattr(value, "dtype"):
            yield f"{indent}{key}: {value.dtype}{list(value.shape)}"
        else:
            yield f"{indent}{key}: {value!r}"
