"""`srlhpc eval`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from srlhpc.cli.options import open_run, root_option, say
from srlhpc.errors import UserError
from srlhpc.runs.progress import ProgressLine


@click.command("eval")
@click.argument("run")
@click.option("--episodes", type=click.IntRange(min=1), default=20, show_default=True, help="Exactly so many.")
@click.option(
    "--video",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Film the episodes: .mp4, .gif; or .png for a sheet with frames of the first one.",
)
@click.option(
    "--max-episode-steps",
    type=click.IntRange(min=1),
    help="Give up an episode that has not ended after so many steps, and what its environment still "
    "had to play; else as the run's evaluators.max_episode_steps (30,000).",
)
@click.option("--checkpoint", type=click.Path(path_type=Path), help="That file; else the newest whole one.")
@click.option("--json", "as_json", is_flag=True, help="The result as an object on standard output.")
@root_option
def command(
    run: str,
    episodes: int,
    video: Path | None,
    max_episode_steps: int | None,
    checkpoint: Path | None,
    as_json: bool,
    root: str | None,
) -> int:
    """Play episodes with the policy of RUN: deterministic actions, frozen weights and statistics.

    Progress is on standard error. Exit code 1 if episodes were given up: the numbers are of the others then.
    """
    from srlhpc.evaluation import evaluate

    if video is not None:
        _draw_without_a_screen()
    paths = open_run(root, run)
    if checkpoint is None:
        from srlhpc.runs.checkpoints import checkpoint_folder

        found = checkpoint_folder(paths).newest_valid()
        if found is None:
            raise UserError(f"run {paths.name} has no checkpoint yet; wait for one, or name a file by --checkpoint")
        for problem in found.problems:
            say(f"skipped: {problem}")
        checkpoint = found.path
    result = evaluate(
        paths,
        episodes=episodes,
        checkpoint=checkpoint,
        video=video,
        max_episode_steps=max_episode_steps,
        line=ProgressLine(sys.stderr),
    )
    if video is not None:
        say(f"wrote {video}")
    if as_json:
        click.echo(json.dumps({"run": paths.id, "name": paths.name, **result}, indent=1))
    else:
        click.echo("\n".join([f"{paths.name}, {checkpoint.name}", *_lines(result)]))
    if not result["unfinished"]:
        return 0
    say(
        f"{result['episodes']} of {episodes} episodes ended; the others were given up, because an episode had not "
        f"ended after {result['max_episode_steps']:,} steps. Allow more by --max-episode-steps, or let the environment "
        "end its episodes (of Gymnasium: environment.kwargs: {max_episode_steps: 1000})."
    )
    return 1


def _draw_without_a_screen() -> None:
    """Keeps SDL, on which pygame draws, from complaining that there is no loudspeaker, or no screen."""
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def _lines(result: Mapping[str, Any]) -> list[str]:
    """Its numbers, and the statistics of the episodes."""
    of_all = {name: value for name, value in result.items() if name not in ("unfinished", "max_episode_steps")}
    numbers = [*of_all.items(), *result["statistics"].items()]
    return [f"  {name}: {value:,.6g}" for name, value in numbers if isinstance(value, int | float)]
