"""`srlhpc doctor`."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from srlhpc.cli.options import root_option, say, set_option
from srlhpc.errors import UserError

if TYPE_CHECKING:
    from srlhpc.doctor.findings import Finding

MOST_SECONDS = 7 * 24 * 3600.0


@click.command("doctor")
@click.option("--cluster", metavar="NAME", help="Check this cluster by a small job: a profile's name or file.")
@click.option(
    "--environment",
    "job",
    metavar="JOB",
    type=click.Path(),
    help="Play this job's environment at random: what it does wrong, how fast it is, the memory it takes.",
)
@set_option
@root_option
@click.option(
    "--wait",
    "wait_seconds",
    metavar="SECONDS",
    default=120.0,
    type=float,
    help="How long that job may be pending; 120.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(
    cluster: str | None,
    job: str | None,
    overrides: tuple[str, ...],
    root: str | None,
    wait_seconds: float,
    as_json: bool,
) -> None:
    """Check that runs can work here, or on a cluster, or that an environment is in order: one line each.

    Exit code 3 if anything is at fault.
    """
    from srlhpc.doctor.examination import examine_cluster, examine_here
    from srlhpc.doctor.findings import worst
    from srlhpc.doctor.job_environment import examine_job
    from srlhpc.runs.search import runs_root
    from srlhpc.specs.cluster import read_cluster

    if not 0 < wait_seconds <= MOST_SECONDS:
        raise UserError(f"--wait: is {wait_seconds:g}; it must be more than 0 and at most {MOST_SECONDS:.0f} seconds")
    if job is not None and cluster is not None:
        raise UserError("--environment and --cluster exclude each other; give one of them")
    if overrides and job is None:
        raise UserError("--set needs a job file to override: --environment JOB")
    found = None if cluster is None else read_cluster(cluster)
    # A kill must not leave the job in the queue.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    folder = runs_root(root)
    if job is not None:
        findings = examine_job(job, overrides)
    else:
        findings = examine_here(folder) if found is None else examine_cluster(folder, found, wait_seconds, say)
    shown = list(_each(findings, as_json))
    if as_json:
        content = {"level": worst(shown), "findings": [asdict(finding) for finding in shown]}
        click.echo(json.dumps(content, indent=1))
    sys.exit(3 if worst(shown) == "fault" else 0)


def _each(findings: Iterable[Finding], as_json: bool) -> Iterable[Finding]:
    """Prints each line as soon as it is known."""
    for finding in findings:
        if not as_json:
            click.echo(finding.line)
        yield finding
