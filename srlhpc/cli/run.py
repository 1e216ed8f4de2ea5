"""`srlhpc run`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from srlhpc.cli.options import open_root, root_option, say, set_option
from srlhpc.cli.output import forgive_output


@click.command("run")
@click.argument("job", type=click.Path())
@click.option("--serial", is_flag=True, help="All roles in this process, in lock-step: exact and easy to debug.")
@set_option
@root_option
@click.option("--name", metavar="NAME", help="Name of the run; else the job's and an id.")
def command(job: str, serial: bool, overrides: tuple[str, ...], root: str | None, name: str | None) -> None:
    """Train JOB here, with live progress. Ctrl-C writes a checkpoint and ends."""
    from srlhpc.launch.attempt import run_attempt
    from srlhpc.launch.fork_server import fork_server
    from srlhpc.launch.preparation import prepare_here
    from srlhpc.runs.creation import check_name, create_run, removed_unless_done
    from srlhpc.runs.lease import Lease
    from srlhpc.runs.starting_weights import copy_weights
    from srlhpc.specs.load import dump_experiment, load_job

    forgive_output()
    folder = open_root(root)
    if name is not None:
        check_name(name, folder)
    with fork_server(wanted=not serial) as forks:
        read = load_job(job, overrides)
        spec = read.spec
        plan = prepare_here(spec, serial=serial, naming=read.naming_places)
        paths = create_run(folder, name, Path(job).stem, dump_experiment(spec), spec.seed, sys.argv)
        with removed_unless_done(paths), read.naming_places():
            copy_weights(plan, paths)
        say(f"run {paths.name} in {paths.folder}")
        for note in plan.notes:
            say(note)
        with Lease(paths.lease).held(1) as lease:
            outcome = run_attempt(paths, lease, plan, overrides, None, serial=serial, fork_server=forks)
    sys.exit(outcome.exit_code)
