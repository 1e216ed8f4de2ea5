"""`srlhpc eval`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from srlhpc.cli.options import open_run, root_option, say
from srlhpc.objects import UserError


@click.command("eval")
@click.argument("run")
@click.option("--episodes", type=click.IntRange(min=1), default=20, show_default=True, help="Exactly so many.")
@click.option(
    "--video",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Film the episodes: .mp4, .gif; or .png for a sheet with frames of the first one.",
)
@click.option("--checkpoint", type=click.Path(path_type=Path), help="That file; else the newest whole one.")
@click.option("--json", "as_json", is_flag=True, help="The result as an object on standard output.")
@root_option
def command(
    run: str, episodes: int, video: Path | None, checkpoint: Path | None, as_json: bool, root: str | None
) -> None:
    """Play episodes with the policy of RUN: deterministic actions, frozen weights and statistics."""
    from srlhpc.launch.evaluate import evaluate

    paths = open_run(root, run)
    if checkpoint is None:
        from srlhpc.launch.checkpoints import checkpoint_folder

        found = checkpoint_folder(paths).newest_valid()
        if found is None:
            raise UserError(f"run {paths.name} has no checkpoint yet; wait for one, or name a file by --checkpoint")
        for problem in found.problems:
            say(f"skipped: {problem}")
        checkpoint = found.path
    result = evaluate(paths, episodes=episodes, checkpoint=checkpoint, video=video)
    if video is not None:
        say(f"wrote {video}")
    if as_json:
        click.echo(json.dumps({"run": paths.id, "name": paths.name, **result}, indent=1))
        return
    click.echo("\n".join([f"{paths.name}, {checkpoint.name}", *_lines(result)]))


def _lines(result: Mapping[str, Any]) -> list[str]:
    """Its numbers, and the statistics of the episodes."""
    numbers = [*result.items(), *result["statistics"].items()]
    return [f"  {name}: {value:,.6g}" for name, value in numbers if isinstance(value, int | float)]
