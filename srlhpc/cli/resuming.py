"""Resuming a run, here or on Slurm: what `resume` and `fork` share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from srlhpc.cli.options import say
from srlhpc.cli.output import forgive_output
from srlhpc.errors import ClusterError, UserError, counted

if TYPE_CHECKING:
    from pathlib import Path

    from srlhpc.data.checkpoint_folder import Newest
    from srlhpc.plan.plan import Plan
    from srlhpc.runs.paths import AttemptPaths, RunPaths
    from srlhpc.specs.experiment import ExperimentSpec


_F = TypeVar("_F", bound=Callable[..., Any])


def where_options(function: _F) -> _F:
    """`--cluster NAME`, `--here`, `--time TIME`."""
    options = [
        click.option("--cluster", metavar="NAME", help="On Slurm, with that profile; else where it ran before."),
        click.option("--here", is_flag=True, help="On this machine, even if it ran on Slurm before."),
        click.option("--time", "limit", metavar="TIME", help="Time limit of the job, for example 12:00:00 or 90m."),
    ]
    for option in options:
        function = option(function)
    return function


def check_idle(paths: RunPaths) -> None:
    """Refuses a run that somebody runs, or that a job in the queue will run.

    Raises:
        UserError: it is not idle.
    """
    from srlhpc.runs.lease import in_use
    from srlhpc.runs.state import is_running

    if holder := is_running(paths):
        raise in_use(paths.lease, holder)
    check_queue(paths)


def check_queue(paths: RunPaths) -> None:
    """Refuses a run that a job in the queue will run.

    Raises:
        UserError: there is one.
    """
    from srlhpc.runs.state import job_ids
    from srlhpc.slurm.jobs import queued_jobs

    ids = job_ids(paths)
    if active := [job for job in (queued_jobs(ids) if ids else {}).values() if job.is_active]:
        raise UserError(
            f"{paths.folder}: is in use: job {active[0].id} is {active[0].state}; wait for it, or end it by "
            f"`srlhpc cancel {paths.typed}`."
        )


def resume_run(
    paths: RunPaths,
    before: ExperimentSpec,
    spec: ExperimentSpec,
    overrides: tuple[str, ...],
    *,
    cluster: str | None,
    here: bool,
    limit: str | None,
) -> int:
    """Starts the next attempt here and stays, or submits a job; returns the exit code.

    Args:
        paths: the run, idle.
        before: its spec until now.
        spec: its spec from now on.
        overrides: what changed it.
        cluster: name of a profile; None for where it ran before.
        here: not on Slurm.
        limit: time limit as the user wrote it.

    Raises:
        UserError: the spec cannot be started there.
        ClusterError: Slurm refuses or is silent.
    """
    if here and (cluster or limit):
        raise UserError("--here: runs on this machine; leave out --cluster and --time")
    if not here and (cluster or _was_on_slurm(paths)):
        return _submit(paths, before, spec, cluster, limit)
    if limit:
        raise UserError("--time: is for jobs on Slurm; name a profile by --cluster")
    return _run_here(paths, before, spec, overrides)


def _next_attempt(paths: RunPaths) -> int:
    numbers = paths.attempt_numbers()
    return numbers[-1] + 1 if numbers else 1


def _was_on_slurm(paths: RunPaths) -> bool:
    from srlhpc.data.atomic import read_json

    last = paths.last_attempt()
    return paths.slurm.exists() and (last is None or bool((read_json(last.attempt) or {}).get("job")))


def _submit(
    paths: RunPaths, before: ExperimentSpec, spec: ExperimentSpec, cluster: str | None, limit: str | None
) -> int:
    from srlhpc.data.atomic import read_json, write_atomically
    from srlhpc.launch.preparation import prepare_job
    from srlhpc.launch.submission import submit_foreman
    from srlhpc.runs.lease import Lease
    from srlhpc.slurm.time_limit import minutes_of
    from srlhpc.specs.cluster import ClusterProfile, read_cluster
    from srlhpc.specs.load import dump_experiment

    written = read_json(paths.slurm) or {}
    where = read_cluster(cluster) if cluster else None
    profile = where.profile if where else ClusterProfile.model_validate(written["cluster"])
    minutes = minutes_of(limit) if limit else int(written.get("minutes") or profile.time_minutes)
    prepared = prepare_job(spec, profile, minutes, naming_profile=where.naming_places if where else nullcontext)
    # Of two that go on with a run at once, one is let in; the other then finds the job of the first.
    with Lease(paths.lease).held(_next_attempt(paths)):
        check_queue(paths)
        _newest(paths, prepared.plan)
        _say_changes(paths, before, spec, prepared.plan)
        write_atomically(paths.spec, dump_experiment(spec).encode())
        try:
            job = submit_foreman(paths, prepared.allocation, profile, minutes=minutes)
        except ClusterError:
            write_atomically(paths.spec, dump_experiment(before).encode())
            raise
    say(f"run {paths.name} in {paths.folder}: job {job}")
    click.echo(paths.id)
    return 0


def _run_here(paths: RunPaths, before: ExperimentSpec, spec: ExperimentSpec, overrides: tuple[str, ...]) -> int:
    from srlhpc.data.atomic import write_atomically
    from srlhpc.launch.attempt import run_attempt
    from srlhpc.launch.fork_server import fork_server
    from srlhpc.launch.preparation import prepare_here
    from srlhpc.runs.lease import Lease
    from srlhpc.specs.load import dump_experiment

    forgive_output()
    last = paths.last_attempt()
    serial = _was_serial(last) if last else False
    with fork_server(wanted=not serial) as forks:
        plan = prepare_here(spec, serial=serial)
        with Lease(paths.lease).held(_next_attempt(paths)) as lease:
            check_queue(paths)
            checkpoint = _newest(paths, plan)
            _say_changes(paths, before, spec, plan)
            write_atomically(paths.spec, dump_experiment(spec).encode())
            outcome = run_attempt(paths, lease, plan, overrides, checkpoint, serial=serial, fork_server=forks)
    return outcome.exit_code


def _say_changes(paths: RunPaths, before: ExperimentSpec, spec: ExperimentSpec, plan: Plan) -> None:
    from srlhpc.data.atomic import read_json

    for line in changes(before, spec):
        say(f"changed: {line}")
    last = paths.last_attempt()
    _say_ranks((read_json(last.plan) if last else None) or {}, plan)


def _was_serial(last: AttemptPaths) -> bool:
    """Whether the run is one in a single process, by either file that says so."""
    from srlhpc.data.atomic import read_json

    for path in (last.attempt, last.plan):
        if isinstance(serial := (read_json(path) or {}).get("serial"), bool):
            return serial
    raise UserError(
        f"{last.attempt} and {last.plan} cannot be read, so it is not known whether the run is serial; "
        f'write {{"serial": false}} (or true) into the first'
    )


def _newest(paths: RunPaths, plan: Plan) -> Path | None:
    """The checkpoint to resume from, if there is one.

    Raises:
        UserError: it does not fit, or there are some and none is whole.
    """
    from srlhpc.runs.checkpoint_fit import check_fit
    from srlhpc.runs.checkpoints import checkpoint_folder
    from srlhpc.runs.replay_checkpoint import check_files, replay_resumes

    folder = checkpoint_folder(paths)
    # An exact resume needs all of replay; any other one can do without.
    found: Newest | None = (
        folder.newest_valid(lambda tree: check_files(tree, paths.replay)) if plan.serial else folder.newest_valid()
    )
    if found is None:
        say(f"run {paths.name} has no checkpoint; it starts from the beginning")
        return None
    for problem in found.problems:
        say(f"skipped: {problem}")
    check_fit(found.tree, found.path, paths, plan)
    meta: dict[str, Any] = found.tree.get("meta", {})
    say(
        f"run {paths.name} resumes from {found.path.name}: "
        f"{counted(meta.get('updates', 0), 'update')}, {counted(meta.get('steps', 0), 'step')}"
    )
    last, steps = plan.spec.stop.steps, int(meta.get("steps", 0))
    if last is not None and steps >= last:
        say(f"stop.steps is {last:,}, and the run has {steps:,}: it ends at once; raise it to train on")
    for resumed in replay_resumes(found.tree, plan, paths.replay):
        say(resumed.text)
        if resumed.is_empty and last is not None and 0 < last - steps <= resumed.start_steps:
            say(f"stop.steps is {last:,}, only {last - steps:,} from here: the run ends with its first updates")
    return found.path


def changes(before: ExperimentSpec, after: ExperimentSpec) -> list[str]:
    """`stop.steps: 1000 -> 2000` for every setting that differs."""
    old, new = _flat(before.model_dump(mode="json")), _flat(after.model_dump(mode="json"))
    return [
        f"{path}: {old.get(path, 'not there')} -> {new.get(path, 'not there')}"
        for path in sorted({**old, **new})
        if old.get(path, ...) != new.get(path, ...)
    ]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {
        name: leaf
        for key, inner in value.items()
        for name, leaf in _flat(inner, f"{path}.{key}" if path else key).items()
    }


def _say_ranks(before: dict[str, Any], after: Plan) -> None:
    old, new = _ranks_of(before), _ranks_of(after.to_json())
    for role in sorted({**old, **new}) if old else []:
        if old.get(role, 0) != new.get(role, 0):
            say(f"changed: {counted(new.get(role, 0), f'{role} rank')}, before {old.get(role, 0)}")


def _ranks_of(plan: dict[str, Any]) -> dict[str, int]:
    from srlhpc.plan.roles import role_of

    names = [role_of(str(rank["label"])) for rank in plan.get("ranks", [])]
    return {name: names.count(name) for name in names}
