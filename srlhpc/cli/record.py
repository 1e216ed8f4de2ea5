"""`srlhpc record`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from srlhpc.cli.options import open_run, say
from srlhpc.cli.played import episode_options, played_checkpoint, show_result
from srlhpc.errors import UserError
from srlhpc.runs.progress import ProgressLine


@click.command("record")
@click.argument("run")
@click.option("--episodes", type=click.IntRange(min=1), required=True, metavar="N", help="Exactly so many.")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The recording, HDF5.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--exploring", is_flag=True, help="Draw actions, and explore, as in training.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Other episodes with each.")
@episode_options
def command(
    run: str,
    episodes: int,
    out: Path,
    force: bool,
    exploring: bool,
    seed: int,
    max_episode_steps: int | None,
    checkpoint: Path | None,
    as_json: bool,
    root: str | None,
) -> int:
    """Play episodes with the policies of RUN, as `eval` does, and write what each agent saw, did and got to a file.

    Progress is on standard error. The file is there when all episodes are in it, and not before. Exit code 1 if
    episodes were given up: the file has the others then.
    """
    from srlhpc.data.full_disk import size_text
    from srlhpc.recording import record

    _check(out, replace=force)
    paths = open_run(root, run)
    try:
        result = record(
            paths,
            out,
            episodes=episodes,
            checkpoint=played_checkpoint(paths, checkpoint),
            exploring=exploring,
            max_episode_steps=max_episode_steps,
            line=ProgressLine(sys.stderr),
            seed=seed,
        )
    except KeyboardInterrupt:
        say(f"stopped; {out} was not written")
        raise
    say(f"wrote {out}, {size_text(result['bytes'])}")
    return show_result(paths, result, episodes, as_json=as_json)


def _check(out: Path, *, replace: bool) -> None:
    """Refuses a file that cannot be written, before anything is played."""
    if out.is_dir():
        raise UserError(f"--out {out}: is a folder; name a file in it, for example {out / 'episodes.h5'}")
    if out.exists() and not out.is_file():
        raise UserError(f"--out {out}: is a device or a pipe, which the recording would replace; name a file")
    if out.exists() and not replace:
        raise UserError(f"--out {out}: exists; replace it by --force, or choose another")
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.absolute().parent}; make it first")
