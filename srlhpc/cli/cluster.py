"""`srlhpc cluster`: profiles."""

from __future__ import annotations

import re
from pathlib import Path

import click

from srlhpc.cli.options import say
from srlhpc.errors import UserError


@click.group("cluster")
def command() -> None:
    """Cluster profiles: a first one, and what is free."""


@command.command("init")
@click.argument("name", required=False)
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False), help="Else clusters/NAME.yaml.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def init(name: str | None, output: str | None, force: bool) -> None:
    """Write a first profile from what Slurm reports. NAME: the cluster's, if none is given."""
    from srlhpc.data.atomic import write_atomically
    from srlhpc.slurm.commands import run_slurm
    from srlhpc.slurm.first_profile import first_profile
    from srlhpc.slurm.partitions import read_nodes

    if name is not None and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise UserError(f"'{name}' cannot be a profile's name: it may have letters, digits, '.', '_' and '-'")
    config = run_slurm(["scontrol", "show", "config"]).stdout
    settings = dict(re.findall(r"(?m)^(\w+)\s*= (.*?)\s*$", config))
    name = name or settings.get("ClusterName") or "cluster"
    nodes = read_nodes()
    if not nodes:
        raise UserError("sinfo lists no partition that you may use; ask the cluster's administrator")
    path = Path(output or f"clusters/{name}.yaml")
    if path.exists() and not force:
        raise UserError(f"{path} exists; replace it by --force, or choose another by --output")
    text = first_profile(name, nodes, requeue=settings.get("JobRequeue", "1") == "1")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}. Choose another by --output.") from None
    say(f"wrote {path}; read it through, then: srlhpc submit JOB --cluster {output or name} --dry-run")
    click.echo(path)


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print where the roles of profile NAME run, and what is free in each partition."""
    from srlhpc.plan.roles import placed_roles
    from srlhpc.slurm.partitions import free_table, read_nodes
    from srlhpc.specs.cluster import read_cluster

    found = read_cluster(name)
    profile = found.profile
    click.echo(f"{found.path}" + (f": {profile.description}" if profile.description else ""))
    for role in placed_roles(profile):
        wants = profile.role(role)
        settings = wants.model_dump(exclude_defaults=True)
        click.echo(f"  {role:14} " + (", ".join(f"{key} {value}" for key, value in settings.items()) or "(defaults)"))
    for line in free_table(read_nodes()):
        click.echo(line)
