"""What `eval` and `record` share: how episodes are asked for, and how it is said what came of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from srlhpc.cli.options import root_option, say
from srlhpc.errors import UserError
from srlhpc.runs.paths import RunPaths

_F = TypeVar("_F", bound=Callable[..., Any])
_NOT_NUMBERS = ("unfinished", "max_episode_steps", "exploring")


json_option = click.option("--json", "as_json", is_flag=True, help="The result as an object on standard output.")
max_steps_option = click.option(
    "--max-episode-steps",
    type=click.IntRange(min=1),
    help="Give up an episode that has not ended after so many steps, and what its environment still had to play; else "
    "as the run's evaluators.max_episode_steps (30,000).",
)
GIVEN_UP_ADVICE = (
    "Allow more by --max-episode-steps, or let the environment end its episodes (of Gymnasium: environment.kwargs: "
    "{max_episode_steps: 1000})."
)


def episode_options(function: _F) -> _F:
    """Which episodes of which parameters are played, and how the result is shown."""
    for option in (
        root_option,
        json_option,
        click.option("--checkpoint", type=click.Path(path_type=Path), help="That file; else the newest whole one."),
        max_steps_option,
    ):
        function = option(function)
    return function


def played_checkpoint(paths: RunPaths, checkpoint: Path | None) -> Path:
    """The file that was named, else the newest whole one; says which newer ones are not.

    Raises:
        UserError: there is none.
    """
    if checkpoint is not None:
        return checkpoint
    from srlhpc.runs.checkpoints import checkpoint_folder

    found = checkpoint_folder(paths).newest_valid()
    if found is None:
        raise UserError(f"run {paths.name} has no checkpoint yet; wait for one, or name a file by --checkpoint")
    for problem in found.problems:
        say(f"skipped: {problem}")
    return found.path


def show_result(paths: RunPaths, result: Mapping[str, Any], wanted: int, *, as_json: bool) -> int:
    """Prints how the episodes went.

    Returns:
        The exit code: 1 if fewer ended than were wanted.
    """
    if as_json:
        click.echo(json.dumps({"run": paths.id, "name": paths.name, **result}, indent=1))
    else:
        click.echo("\n".join([f"{paths.name}, {result['checkpoint']}", *_lines(result)]))
    if not result["unfinished"]:
        return 0
    say(
        f"{result['episodes']} of {wanted} episodes ended; the others were given up, because an episode had not "
        f"ended after {result['max_episode_steps']:,} steps. {GIVEN_UP_ADVICE}"
    )
    return 1


def _lines(result: Mapping[str, Any]) -> list[str]:
    """Its numbers, and the statistics of the episodes."""
    of_all = {name: value for name, value in result.items() if name not in _NOT_NUMBERS}
    numbers = [*of_all.items(), *result["statistics"].items()]
    return [f"  {name}: {value:,.6g}" for name, value in numbers if isinstance(value, int | float)]
