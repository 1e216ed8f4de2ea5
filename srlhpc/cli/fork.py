"""`srlhpc fork`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from srlhpc.cli.options import open_root, open_run, root_option, say, set_option
from srlhpc.cli.resuming import resume_run, where_options
from srlhpc.errors import ClusterError, UserError

if TYPE_CHECKING:
    from srlhpc.runs.paths import RunPaths


@click.command("fork")
@click.argument("run")
@click.option("--checkpoint", metavar="FILE", help="One of RUN's checkpoints; else its newest whole one.")
@where_options
@set_option
@root_option
@click.option("--name", metavar="NAME", help="Name of the new run; else the job's and an id.")
def command(
    run: str,
    checkpoint: str | None,
    cluster: str | None,
    here: bool,
    limit: str | None,
    overrides: tuple[str, ...],
    root: str | None,
    name: str | None,
) -> None:
    """Start a new run from a checkpoint of RUN, here unless --cluster names a profile; RUN itself is not touched.

    The new run counts on from the checkpoint. --set changes its spec.
    """
    from srlhpc.data.atomic import read_json, write_json
    from srlhpc.launch.preparation import prepare_plan
    from srlhpc.runs.checkpoint_fit import check_fit
    from srlhpc.runs.creation import create_run
    from srlhpc.runs.replay_checkpoint import copy_files
    from srlhpc.specs.load import dump_experiment, load_experiment

    source = open_run(root, run)
    chosen, tree = _chosen(source, checkpoint)
    before, spec = load_experiment(source.spec), load_experiment(source.spec, overrides)
    check_fit(tree, chosen, source, prepare_plan(spec))
    job = str((read_json(source.run) or {}).get("job") or source.name)
    paths = create_run(open_root(root), name, job, dump_experiment(spec), spec.seed, sys.argv)
    shutil.copyfile(chosen, paths.checkpoints / chosen.name)
    copy_files(tree, source.replay, paths.replay)
    if source.weights.exists():
        shutil.copytree(source.weights, paths.weights)
    content = read_json(paths.run) or {}
    content["folder"] = (read_json(source.run) or {}).get("folder")
    write_json(paths.run, {**content, "forked_from": {"run": source.id, "checkpoint": chosen.name}})
    say(f"run {paths.name} in {paths.folder}: forked from {source.name}, {chosen.name}")
    try:
        code = resume_run(paths, before, spec, overrides, cluster=cluster, here=here, limit=limit)
    except (UserError, ClusterError):
        if not paths.attempt_numbers() and not paths.slurm.exists():
            shutil.rmtree(paths.folder)
        raise
    sys.exit(code)


def _chosen(source: RunPaths, checkpoint: str | None) -> tuple[Path, Mapping[str, Any]]:
    """The checkpoint to start from.

    Raises:
        UserError: there is none, or it is not whole.
    """
    from srlhpc.data.checkpoint import read_checkpoint
    from srlhpc.runs.checkpoints import checkpoint_folder, checkpoint_named

    folder = checkpoint_folder(source)
    if checkpoint is not None:
        path = checkpoint_named(source, Path(checkpoint).name)
        if not path.exists():
            known = ", ".join(file.name for file in folder.files()) or "none"
            raise UserError(f"--checkpoint: run {source.name} has no '{checkpoint}'; it has: {known}")
        return path, read_checkpoint(path)
    newest = folder.newest_valid()
    if newest is None:
        raise UserError(f"run {source.name} has no checkpoint to start from; start anew: srlhpc run {source.spec}")
    for problem in newest.problems:
        say(f"skipped: {problem}")
    return newest.path, newest.tree
