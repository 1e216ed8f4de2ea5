"""`srlhpc checkpoint`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from srlhpc.cli.options import open_run, root_option, say
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.data.full_disk import size_text
from srlhpc.errors import UserError
from srlhpc.runs.paths import RunPaths


@click.group("checkpoint")
def command() -> None:
    """Which checkpoints and versions a run has, what is inside one, and whether it is whole."""


@command.command("list")
@click.argument("run")
@root_option
def list_files(run: str, root: str | None) -> None:
    """List the checkpoints of RUN, and the versions of its policies, oldest first."""
    from srlhpc.runs.checkpoints import all_checkpoints
    from srlhpc.runs.versions import tags_of, version_files

    paths = open_run(root, run)
    versions = version_files(paths)
    tags = tags_of(paths) if versions else {}
    found = [_line(paths, file) for file in all_checkpoints(paths)]
    for files in versions.values():
        found += [_line(paths, file, tags) for file in files]
    click.echo("\n".join(found)) if found else say(f"run {paths.name} has no checkpoint and no version yet")


def _line(paths: RunPaths, file: Path, tags: Mapping[str, int] | None = None) -> str:
    """A file, its size, and what else tells it from others."""
    from srlhpc.data.checkpoint import read_score

    more = [tag for tag, updates in (tags or {}).items() if updates == updates_of(file)]
    try:
        size = size_text(file.stat().st_size)
        if tags is None and (score := read_score(file)) is not None:
            more.append(f"score {score:,.4g}")
    except (UserError, OSError) as error:
        size = str(error)
    shown = file.relative_to(paths.folder) if file.is_relative_to(paths.folder) else file
    return "  ".join([str(shown), size, *more])


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
