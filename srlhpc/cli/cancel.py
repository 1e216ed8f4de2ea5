"""`srlhpc cancel`."""

from __future__ import annotations

import click

from srlhpc.cli.options import open_run, root_option, say
from srlhpc.launch.run_state import is_running, run_state


@click.command("cancel")
@click.argument("run")
@root_option
def command(run: str, root: str | None) -> None:
    """Let RUN write a checkpoint and end, as Ctrl-C in its terminal does."""
    paths = open_run(root, run)
    holder = is_running(paths)
    if holder is None:
        say(f"run {paths.name} does not run: it is {run_state(paths)['state']}")
        return
    paths.attempt(holder.attempt).stop.touch()
    say(f"run {paths.name} will write a checkpoint and end; srlhpc status {paths.name} tells when")
