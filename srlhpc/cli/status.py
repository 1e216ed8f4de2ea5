"""`srlhpc status`."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from srlhpc.cli.options import open_root, root_option, say
from srlhpc.launch.jobs import SlurmJobs
from srlhpc.launch.progress_line import duration_text
from srlhpc.launch.run_state import job_ids, run_state, silence
from srlhpc.launch.rundir import RunPaths
from srlhpc.launch.runs import all_runs, find_run

_COLUMNS = ("run", "state", "attempt", "steps", "steps/s", "return", "lag", "ranks", "checkpoint", "time", "left")


@click.command("status")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--watch", is_flag=True, help="Look again every second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects on standard output.")
@root_option
def command(runs: tuple[str, ...], watch: bool, as_json: bool, root: str | None) -> None:
    """Where RUNs stand; all of them if none is named."""
    folder = open_root(root)

    def chosen() -> list[RunPaths]:
        return [find_run(folder, run) for run in runs] if runs else all_runs(folder)

    if watch and not as_json:
        _watch(chosen)
        return
    states = _states(chosen())
    if as_json:
        click.echo(json.dumps(_strict(states), indent=1))
    elif states:
        click.echo("\n".join(table(states)))
    else:
        say(f"no runs in {folder}. Start one: srlhpc run jobs/cartpole.yaml")


def _states(chosen: Sequence[RunPaths]) -> list[dict[str, Any]]:
    """Of all runs; Slurm is asked once."""
    jobs = SlurmJobs(job for paths in chosen for job in job_ids(paths))
    states = [run_state(paths, jobs) for paths in chosen]
    if jobs.warning is not None:
        say(f"warning: {jobs.warning} (what is shown is what the runs' files say)")
    return states


def _watch(chosen: Any) -> None:
    try:
        while True:
            lines = table(_states(chosen()))
            click.clear()
            click.echo("\n".join(lines))
            time.sleep(1.0)
    except KeyboardInterrupt:
        return


def table(states: Sequence[Mapping[str, Any]]) -> list[str]:
    """The states as lines with aligned columns, remarks below."""
    rows = [_COLUMNS, *(_row(state) for state in states)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return lines + [remark for state in states for remark in _remarks(state)]


def _row(state: Mapping[str, Any]) -> tuple[str, ...]:
    reason = state["reason"] or (state["phase"] if state["phase"] != "training" else None)
    return (
        state["name"],
        f"{state['state']} ({reason})" if reason else state["state"],
        str(state["attempt"]),
        _number(state["steps"], "{:,.0f}"),
        _number(state["steps_per_second"], "{:,.0f}"),
        _number(state["return_mean"], "{:,.4g}"),
        _number(state["policy_lag_mean"], "{:.2g}"),
        f"{state['ranks_alive']}/{state['ranks_planned'] or '?'}",
        _number(state["last_checkpoint_updates"], "{:,.0f}"),
        duration_text(state["seconds"] or 0.0),
        state["time_left"] or "-",
    )


def _remarks(state: Mapping[str, Any]) -> list[str]:
    said = state["message"] or ""
    remarks = [
        f"{state['name']}: {rank['label']} (rank {rank['rank']}, {rank.get('host', '')}) is dead"
        for rank in state["ranks"] or []
        if not rank.get("alive", True) and state["phase"] != "starting"
    ]
    remarks += [f"{state['name']}: {warning}" for warning in state["warnings"] if warning not in said]
    if state["message"] and state["state"] in ("failed", "node failed", "out of memory", "timed out"):
        remarks.append(f"{state['name']}: {state['message']}; more: srlhpc why {state['name']}")
    if seconds := silence(state):
        remarks.append(f"{state['name']}: its coordinator has written nothing for {duration_text(seconds)}")
    return remarks


def _number(value: Any, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) and math.isfinite(value) else "-"


def _strict(value: Any) -> Any:
    """Without NaN and infinities, which JSON does not have."""
    match value:
        case dict():
            return {key: _strict(inner) for key, inner in value.items()}
        case list():
            return [_strict(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
    return value
