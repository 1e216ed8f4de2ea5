"""`srlhpc arena`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from srlhpc.cli.options import find_modules, open_root, root_option, say
from srlhpc.cli.played import GIVEN_UP_ADVICE, json_option, max_steps_option
from srlhpc.cli.strict_json import strict_json
from srlhpc.errors import counted
from srlhpc.runs.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from srlhpc.arena.matches import Played
    from srlhpc.arena.sides import Side
    from srlhpc.runs.named_checkpoint import NamedCheckpoint


@click.command("arena")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Exactly so many of every pairing on either side.",
)
@click.option(
    "--side",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Agents that play together, by a regular expression on their names; once for each of both sides. Else as the "
    "runs' `agents`.",
)
@click.option("--draw-actions", is_flag=True, help="Draw actions as the policies weigh them; else the most likely.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Other episodes with each.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Picture: .png, .svg, .pdf."
)
@max_steps_option
@json_option
@root_option
def command(
    runs: tuple[str, ...],
    episodes: int,
    patterns: tuple[str, ...],
    draw_actions: bool,
    seed: int,
    out: Path | None,
    max_episode_steps: int | None,
    as_json: bool,
    root: str | None,
) -> int:
    """Play RUNs against each other, all against all on both sides, with frozen weights; print who beats whom.

    Each RUN is a run (its newest checkpoint), RUN@UPDATES, RUN@TAG or a checkpoint file. Progress is on standard error.
    Exit code 1 if episodes were given up: the numbers are of the others then.
    """
    from srlhpc.arena.contestants import contestants_of
    from srlhpc.arena.matches import Conditions, play
    from srlhpc.arena.report import result_of
    from srlhpc.arena.tables import lines_of

    _check_picture(out)
    contestants, sides = contestants_of(_found(open_root(root), runs), patterns)
    conditions = Conditions(episodes, seed, draw_actions, max_episode_steps)
    played = play(contestants, sides, conditions, ProgressLine(sys.stderr))
    if as_json:
        click.echo(strict_json(result_of(contestants, sides, conditions, played)))
    else:
        click.echo("\n".join(lines_of(sides, conditions, played, shutil.get_terminal_size().columns)))
    if out is not None:
        _draw(played, sides, out)
        say(f"wrote {out}")
    if not played.unfinished:
        return 0
    say(
        f"{counted(played.unfinished, 'episode')} of all pairings were given up, because one had not ended after "
        f"{played.most_steps:,} steps. {GIVEN_UP_ADVICE}"
    )
    return 1


def _found(root: Path, runs: Sequence[str]) -> list[NamedCheckpoint]:
    """The checkpoints that are meant; what their runs' specs name can be imported then."""
    from srlhpc.runs.named_checkpoint import find_checkpoint

    found = []
    for run in runs:
        named = find_checkpoint(root, run)
        if named.run is not None:
            find_modules(named.run)
        for problem in named.skipped:
            say(f"skipped: {problem}")
        found.append(named)
    return found


def _check_picture(out: Path | None) -> None:
    """Refuses a picture that cannot be drawn, before anything is played."""
    from srlhpc.pictures.figures import check_file, check_matplotlib

    if out is not None:
        check_matplotlib("arena --out")
        check_file(out)


def _draw(played: Played, sides: tuple[Side, Side], out: Path) -> None:
    from srlhpc.arena.report import ratings_of
    from srlhpc.pictures.cross_play import Matrix, draw_cross_play

    win_rates = Matrix("row beats column, percent", 100 * played.games.win_rates, (0.0, 100.0), form="{:.0f}")
    first, second = (side.name for side in sides)
    returns = [
        Matrix(f"return of {side.name}", means, rows=first, columns=second)
        for side, means in zip(sides, played.by_side.mean_returns, strict=True)
    ]
    draw_cross_play(played.games.rows, win_rates, ratings_of(played), () if played.alike else returns, out)
