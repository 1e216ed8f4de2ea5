"""`srlhpc status`."""

from __future__ import annotations

import math
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from srlhpc.cli.options import open_root, root_option, say
from srlhpc.cli.strict_json import strict_json
from srlhpc.data.score import EPISODES_IN_MEAN
from srlhpc.errors import counted, rounded
from srlhpc.plan.lag_text import lag_hints, lag_lines
from srlhpc.runs.closed_runs import closed_runs
from srlhpc.runs.creation import not_runs
from srlhpc.runs.matches import evaluation_lines, match_lines
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import duration_text, timing_lines
from srlhpc.runs.replay_state import replay_lines
from srlhpc.runs.search import all_runs, find_run
from srlhpc.runs.state import SAID_BY_STATE, job_ids, run_state, silence, silent_ranks
from srlhpc.runs.versions import version_lines
from srlhpc.slurm.jobs import SlurmJobs
from srlhpc.slurm.states import words_that

_COLUMNS = ("run", "state", "attempt", "steps", "steps/s", "return", "lag", "ranks", "checkpoint", "time", "left")
_FIRST_TO_GO = ("lag", "attempt", "checkpoint", "steps/s", "ranks", "left", "time", "steps", "return")
"""Columns that a narrow terminal does without."""
_SLURM_SECONDS = 10.0
"""Seconds between two questions to Slurm while watching."""
_ALARMING = ("failed", *words_that(lambda word: word.is_alarming))
_DEAD_SHOWN = 5
_LINE = 120
"""Characters of a line of text."""


@click.command("status")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl-C.")
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
    found = chosen()
    jobs = _jobs(found)
    states = _states(found, jobs)
    for line in [*_warning(jobs), *([] if runs else [*closed_runs(folder), *_skipped(folder)])]:
        say(line)
    if as_json:
        click.echo(strict_json(states))
    elif states:
        click.echo("\n".join(table(states, _width())))
    else:
        say(f"no runs in {folder}. Start one: srlhpc run jobs/cartpole.yaml")


def _skipped(folder: Path) -> list[str]:
    return [f"skipped: {file} is broken, or of another program" for file in not_runs(folder)]


def _states(chosen: Sequence[RunPaths], jobs: SlurmJobs) -> list[dict[str, Any]]:
    """The states of all runs; Slurm is asked once."""
    return [run_state(paths, jobs) for paths in chosen]


def _jobs(chosen: Sequence[RunPaths]) -> SlurmJobs:
    return SlurmJobs(job for paths in chosen for job in job_ids(paths))


def _warning(jobs: SlurmJobs) -> list[str]:
    return [] if jobs.warning is None else [f"warning: {jobs.warning} (what is shown is what the runs' files say)"]


def _watch(chosen: Callable[[], Sequence[RunPaths]]) -> None:
    """Draws the table over the last one, once a second; Slurm is asked less often, since many may watch."""
    asked_at = -math.inf
    try:
        while True:
            runs = chosen()
            if time.monotonic() - asked_at >= _SLURM_SECONDS:
                jobs = _jobs(runs)
                asked_at = time.monotonic()
            states = _states(runs, jobs)
            _draw([*table(states, _width()), *_warning(jobs)] if states else ["no runs yet"])
            time.sleep(1.0)
    except KeyboardInterrupt:
        return


def _draw(lines: Sequence[str]) -> None:
    if not sys.stdout.isatty():
        click.echo("\n".join([*lines, ""]))
        return
    size = shutil.get_terminal_size()
    shown = [line[: size.columns - 1] for line in lines[: size.lines - 1]]
    # Each line is cleared behind its end and the rest below: without a blank screen in between, nothing flickers.
    click.echo("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in shown) + "\x1b[J", nl=False)


def _width() -> int | None:
    """Columns of the terminal; None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else None


def table(states: Sequence[Mapping[str, Any]], width: int | None = None) -> list[str]:
    """The states as lines with aligned columns, remarks below.

    A single run also gets the statistics of its last episodes, the use of its roles' time, and the age of its data.

    Args:
        states: of the runs.
        width: columns that there are; less important ones are left out until the table fits. None: any.
    """
    rows = [_COLUMNS, *(_row(state) for state in states)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    shown = _shown(widths, width)
    lines = ["  ".join(row[column].ljust(widths[column]) for column in shown).rstrip() for row in rows]
    if len(states) == 1:
        lines += [*_episode_lines(states[0], width), *timing_lines(states[0]), *replay_lines(states[0])]
        lines += [*_lag_lines(states[0]), *version_lines(states[0]), *match_lines(states[0])]
        lines += evaluation_lines(states[0])
    return lines + [remark for state in states for remark in _remarks(state)]


def _shown(widths: Sequence[int], width: int | None) -> list[int]:
    """The columns that fit."""
    shown = list(range(len(widths)))
    for name in _FIRST_TO_GO:
        if width is None or sum(widths[column] + 2 for column in shown) - 2 <= width:
            break
        shown.remove(_COLUMNS.index(name))
    return shown


def _row(state: Mapping[str, Any]) -> tuple[str, ...]:
    reason = state["reason"] or (state["phase"] if state["phase"] != "training" else None)
    if reason in SAID_BY_STATE:
        reason = None
    return (
        state["name"],
        f"{state['state']} ({reason})" if reason else state["state"],
        str(state["attempt"]),
        _number(state["steps"], "{:,.0f}"),
        _number(state["steps_per_second"], "{:,.0f}"),
        _number(state["return_mean"], "{:,.4g}"),
        rounded(lag) if (lag := state["policy_lag_mean"]) is not None else "-",
        f"{state['ranks_alive']}/{state['ranks_planned'] or '?'}",
        _number(state["last_checkpoint_updates"], "{:,.0f}"),
        duration_text(state["seconds"] or 0.0),
        state["time_left"] or "-",
    )


def _episode_lines(state: Mapping[str, Any], width: int | None) -> list[str]:
    """Means over the last episodes of what the environment counts, if it does; long lines are broken."""
    numbers = [f"{name} {_number(value, '{:,.4g}')}" for name, value in state["episode"].items()]
    if not numbers:
        return []
    return textwrap.wrap(
        f"  last {counted(min(state['episodes'], EPISODES_IN_MEAN), 'episode')}: {', '.join(numbers)}",
        min(width or _LINE, _LINE),
        subsequent_indent="    ",
        break_long_words=False,
    )


def _lag_lines(state: Mapping[str, Any]) -> list[str]:
    return [f"  {line}" for line in lag_lines(state)] + [f"  {hint}" for hint in lag_hints(state)]


def _remarks(state: Mapping[str, Any]) -> list[str]:
    said = state["message"] or ""
    dead = [
        f"{state['name']}: {rank['label']} (rank {rank['rank']}, {rank.get('host', '')}) is dead"
        for rank in state["ranks"] or []
        if not rank.get("alive", True) and state["phase"] != "starting"
    ]
    remarks = dead[:_DEAD_SHOWN]
    remarks += [f"{state['name']}: {len(dead) - _DEAD_SHOWN} more are dead"] if len(dead) > _DEAD_SHOWN else []
    silent = silent_ranks(state)
    remarks += [f"{state['name']}: {line}" for line in silent[:_DEAD_SHOWN]]
    remarks += [f"{state['name']}: {len(silent) - _DEAD_SHOWN} more are silent"] if len(silent) > _DEAD_SHOWN else []
    remarks += [f"{state['name']}: {state['crash_loop']}"] if state.get("crash_loop") else []
    remarks += [f"{state['name']}: {warning}" for warning in state["warnings"][-_DEAD_SHOWN:] if warning not in said]
    if state["message"] and state["state"] in _ALARMING:
        remarks.append(f"{state['name']}: {' '.join(said.split())}; more: srlhpc why {shlex.quote(state['name'])}")
    if seconds := silence(state):
        remarks.append(f"{state['name']}: its coordinator has written nothing for {duration_text(seconds)}")
    return remarks


def _number(value: Any, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) and math.isfinite(value) else "-"
