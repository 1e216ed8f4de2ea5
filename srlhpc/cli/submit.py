"""`srlhpc submit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from srlhpc.cli.options import open_root, root_option, say, set_option
from srlhpc.errors import ClusterError, UserError

if TYPE_CHECKING:
    from srlhpc.launch.preparation import PreparedJob
    from srlhpc.runs.paths import RunPaths

MOST_CHAINED = 100


@click.command("submit")
@click.argument("job", type=click.Path())
@click.option("--cluster", required=True, metavar="NAME", help="Cluster profile: its name or its file.")
@click.option("--dry-run", is_flag=True, help="Show what would be submitted, and submit nothing.")
@click.option("--time", "limit", metavar="TIME", help="Time limit of a job, for example 12:00:00 or 90m.")
@click.option(
    "--chain",
    metavar="N",
    default=1,
    type=int,
    help="Submit that many jobs, each resuming after the one before; they are not requeued.",
)
@set_option
@root_option
@click.option("--name", metavar="NAME", help="Name of the run; else the job's and an id.")
def command(
    job: str,
    cluster: str,
    dry_run: bool,
    limit: str | None,
    chain: int,
    overrides: tuple[str, ...],
    root: str | None,
    name: str | None,
) -> None:
    """Train JOB on a Slurm cluster: submits, prints the run's id and returns."""
    from srlhpc.launch.preparation import prepare_job
    from srlhpc.runs.creation import check_name, removed_unless_done
    from srlhpc.runs.search import runs_root
    from srlhpc.runs.starting_weights import copy_weights
    from srlhpc.slurm.time_limit import minutes_of
    from srlhpc.specs.cluster import read_cluster
    from srlhpc.specs.load import dump_experiment, load_job

    if not 1 <= chain <= MOST_CHAINED:
        raise UserError(f"--chain: is {chain}; it must be at least 1 and at most {MOST_CHAINED}")
    if name is not None:
        check_name(name, runs_root(root))
    if not str(runs_root(root)).isprintable():
        raise UserError(
            f"--root: {str(runs_root(root))!r} has characters that a batch script cannot hold; choose another"
        )
    where, read = read_cluster(cluster), load_job(job, overrides)
    profile = where.profile.model_copy(update={"requeue": False}) if chain > 1 else where.profile
    minutes = profile.time_minutes if limit is None else minutes_of(limit)
    prepared = prepare_job(read.spec, profile, minutes, naming=read.naming_places, naming_profile=where.naming_places)
    for note in prepared.plan.notes:
        say(note)
    if dry_run:
        from srlhpc.cli.dry_run import show
        from srlhpc.runs.starting_weights import check_weights

        with read.naming_places():
            check_weights(prepared.plan)
        show(prepared, name or f"{Path(job).stem}-ID", runs_root(root), chain)
        return
    paths = _create(open_root(root), name, Path(job).stem, dump_experiment(read.spec), read.spec.seed)
    with removed_unless_done(paths), read.naming_places():
        copy_weights(prepared.plan, paths)
    ids = _submit(paths, prepared, chain)
    say(f"run {paths.name} in {paths.folder}: job {' '.join(ids)}")
    click.echo(paths.id)


def _create(folder: Path, name: str | None, job: str, spec_text: str, seed: int) -> RunPaths:
    from srlhpc.runs.creation import create_run, removed_unless_done, write_code_diff
    from srlhpc.slurm.commands import NoSlurm, no_slurm, slurm_is_here

    if not slurm_is_here():
        raise NoSlurm(no_slurm("sbatch"))
    paths = create_run(folder, name, job, spec_text, seed, sys.argv)
    with removed_unless_done(paths):
        write_code_diff(paths)
    return paths


def _submit(paths: RunPaths, job: PreparedJob, chain: int) -> list[str]:
    """Submits all jobs of a chain; a run that no job was submitted for is removed again."""
    from srlhpc.launch.submission import submit_foreman
    from srlhpc.runs.creation import removed_unless_done

    minutes = job.allocation.minutes
    with removed_unless_done(paths):
        ids = [submit_foreman(paths, job.allocation, job.profile, minutes=minutes)]
    while len(ids) < chain:
        try:
            dependency = f"afterany:{ids[-1]}"
            ids.append(
                submit_foreman(
                    paths, job.allocation, job.profile, minutes=job.allocation.minutes, dependency=dependency
                )
            )
        except (ClusterError, OSError) as error:
            raise ClusterError(
                f"only {len(ids)} of {chain} jobs of run {paths.name} are in the queue ({' '.join(ids)}): {error}"
            ) from None
    return ids
