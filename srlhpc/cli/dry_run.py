"""What `srlhpc submit --dry-run` shows."""

from __future__ import annotations

from pathlib import Path

import click

from srlhpc.launch.preparation import PreparedJob
from srlhpc.launch.submission import foreman_command, start_estimate
from srlhpc.slurm.rank_map import rank_map, resources_table
from srlhpc.slurm.sbatch import sbatch_text


def show(job: PreparedJob, name: str, root: Path, chain: int) -> None:
    """Prints batch script, ranks, resources, cost and when the job could start.

    Raises:
        ClusterError: Slurm would refuse the job.
    """
    folder, profile, allocation = root / name / "slurm", job.profile, job.allocation
    text = sbatch_text(allocation, profile, name=name, folder=folder, command=foreman_command(profile, folder))
    click.echo(text)
    for line in [*rank_map(job.plan, allocation), "", *resources_table(allocation)]:
        click.echo(line)
    if chain > 1:
        click.echo(f"chain of {chain} jobs, one after the other: at most {chain} times that")
    click.echo(f"start estimate: {start_estimate(text, allocation)}")
