"""`srlhpc spec`: what a job file means, once everything is filled in."""

from __future__ import annotations

import json

import click

from srlhpc.cli.options import set_option
from srlhpc.errors import UserError


@click.command("spec")
@click.argument("job", required=False, type=click.Path())
@set_option
@click.option("--schema", is_flag=True, help="Print the JSON schema; with JOB, its modules' settings are filled in.")
@click.option(
    "--plan",
    "show_plan",
    is_flag=True,
    help="Print which rank does what and the memory it needs; refuses what does not fit together, as `run` does.",
)
def command(job: str | None, overrides: tuple[str, ...], schema: bool, show_plan: bool) -> None:
    """Print the resolved spec of JOB as YAML, which is a job file again.

    Keys and values are checked; whether they fit the environment and each other, --plan tells.
    """
    from srlhpc.specs.load import dump_experiment, load_job
    from srlhpc.specs.schema import job_schema

    if schema and show_plan:
        raise UserError("--schema and --plan exclude each other; give one of them")
    if job is None and not schema:
        raise UserError("name a job file, for example: srlhpc spec jobs/cartpole.yaml")
    if job is None and overrides:
        raise UserError("--set needs a job file to override")
    read = load_job(job, overrides) if job is not None else None
    if schema:
        click.echo(json.dumps(job_schema(read.spec if read else None), indent=2))
    elif read and show_plan:
        from srlhpc.launch.preparation import prepare_plan
        from srlhpc.plan.table import plan_table
        from srlhpc.runs.starting_weights import check_weights

        plan = prepare_plan(read.spec, naming=read.naming_places)
        with read.naming_places():
            check_weights(plan)
        click.echo(plan_table(plan))
    elif read:
        click.echo(dump_experiment(read.spec), nl=False)
