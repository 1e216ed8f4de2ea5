"""`srlhpc eval`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from srlhpc.cli.options import open_run, say
from srlhpc.cli.played import episode_options, played_checkpoint, show_result
from srlhpc.runs.progress import ProgressLine


@click.command("eval")
@click.argument("run")
@click.option("--episodes", type=click.IntRange(min=1), default=20, show_default=True, help="Exactly so many.")
@click.option(
    "--video",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Film the episodes: .mp4, .gif; or .png for a sheet with frames of the first one.",
)
@episode_options
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
    result = evaluate(
        paths,
        episodes=episodes,
        checkpoint=played_checkpoint(paths, checkpoint),
        video=video,
        max_episode_steps=max_episode_steps,
        line=ProgressLine(sys.stderr),
    )
    if video is not None:
        say(f"wrote {video}")
    return show_result(paths, result, episodes, as_json=as_json)


def _draw_without_a_screen() -> None:
    """Keeps SDL, on which pygame draws, from complaining that there is no loudspeaker, or no screen."""
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
