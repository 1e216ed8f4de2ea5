"""`srlhpc resume`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from srlhpc.cli.options import open_run, root_option, say, set_option
from srlhpc.objects import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from srlhpc.data.checkpoint_folder import Newest
    from srlhpc.launch.ranks import Plan
    from srlhpc.launch.rundir import AttemptPaths, RunPaths
    from srlhpc.specs.experiment import ExperimentSpec


@click.command("resume")
@click.argument("run")
@set_option
@root_option
def command(run: str, overrides: tuple[str, ...], root: str | None) -> None:
    """Go on with RUN from its newest whole checkpoint.

    RUN is a name, an id, the start of an id, or `latest`. --set changes its spec from now on, for example stop.steps
    of a run that has finished.
    """
    from srlhpc.data.atomic import read_json, write_atomically
    from srlhpc.launch.attempt import check_devices, check_launcher, run_attempt
    from srlhpc.launch.lease import Lease, in_use
    from srlhpc.launch.plan import plan
    from srlhpc.launch.run_state import is_running, run_state
    from srlhpc.specs.load import dump_experiment, load_experiment
    from srlhpc.specs.probe import probe_spaces

    paths = open_run(root, run)
    if holder := is_running(paths):
        raise in_use(paths.lease, holder)
    before, spec = load_experiment(paths.spec), load_experiment(paths.spec, overrides)
    state = run_state(paths)
    if state["state"] == "finished" and spec.stop == before.stop:
        say(f"run {paths.name} is finished ({state['reason']}); to go on, extend it: --set stop.steps=...")
        return
    last = paths.last_attempt()
    serial = _was_serial(last) if last else False
    check_launcher(serial)
    check_devices(spec)
    made = plan(spec, probe_spaces(spec.environment), serial=serial)
    numbers = paths.attempt_numbers()
    with Lease(paths.lease).held(numbers[-1] + 1 if numbers else 1) as lease:
        checkpoint = _newest(paths)
        for line in changes(before, spec):
            say(f"changed: {line}")
        _say_ranks((read_json(last.plan) if last else None) or {}, made)
        write_atomically(paths.spec, dump_experiment(spec).encode())
        outcome = run_attempt(paths, lease, made, overrides, checkpoint, serial=serial)
    sys.exit(outcome.exit_code)


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


def _newest(paths: RunPaths) -> Path | None:
    from srlhpc.data.checkpoint_folder import CheckpointFolder

    found: Newest | None = CheckpointFolder(paths.checkpoints).newest_valid()
    if found is None:
        say(f"run {paths.name} has no checkpoint; it starts from the beginning")
        return None
    for problem in found.problems:
        say(f"skipped: {problem}")
    meta: dict[str, Any] = found.tree.get("meta", {})
    say(
        f"run {paths.name} goes on from {found.path.name}: "
        f"{meta.get('updates', 0):,} updates, {meta.get('steps', 0):,} steps"
    )
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
            say(f"changed: {new.get(role, 0)} {role} ranks, before {old.get(role, 0)}")


def _ranks_of(plan: dict[str, Any]) -> dict[str, int]:
    names = [str(rank["label"]).partition("-")[0] for rank in plan.get("ranks", [])]
    return {name: names.count(name) for name in names}
