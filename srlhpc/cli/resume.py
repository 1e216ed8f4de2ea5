"""`srlhpc resume`."""

from __future__ import annotations

import sys

import click

from srlhpc.cli.options import open_run, root_option, say, set_option
from srlhpc.cli.resuming import check_idle, resume_run, where_options

_LIMITS = ("steps", "updates", "return_mean", "hours")


@click.command("resume")
@click.argument("run")
@where_options
@set_option
@root_option
def command(
    run: str, cluster: str | None, here: bool, limit: str | None, overrides: tuple[str, ...], root: str | None
) -> None:
    """Resume RUN from its newest whole checkpoint, on Slurm or here as before.

    RUN is a name, an id, the beginning of either, or `latest`. --set changes its spec from now on, for example
    stop.steps of a run that has finished.
    """
    from srlhpc.runs.state import run_state
    from srlhpc.specs.load import load_experiment

    paths = open_run(root, run)
    check_idle(paths)
    before, spec = load_experiment(paths.spec), load_experiment(paths.spec, overrides)
    state = run_state(paths)
    if state["state"] == "finished" and spec.stop == before.stop:
        say(f"run {paths.name} is finished ({state['reason']}); to resume it, extend it: {_extension(state['reason'])}")
        return
    sys.exit(resume_run(paths, before, spec, overrides, cluster=cluster, here=here, limit=limit))


def _extension(reason: str | None) -> str:
    """The option that extends a run which has reached one of its limits."""
    return f"--set stop.{reason}=..." if reason in _LIMITS else "--set stop.steps=..."
