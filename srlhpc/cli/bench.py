"""`srlhpc bench`: how fast it is here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from srlhpc.cli.options import say
from srlhpc.errors import UserError

if TYPE_CHECKING:
    from srlhpc.bench.rows import Row
    from srlhpc.bench.runs import Measure

_F = TypeVar("_F", bound=Callable[..., Any])
_FACTORS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20}


class Sizes(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """`256B,28KiB` as bytes."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        found = [re.fullmatch(r"(\d+) ?(|B|KiB|MiB)", text.strip(), re.IGNORECASE) for text in value.split(",")]
        sizes = [int(match[1]) * _FACTORS[match[2].upper()] for match in found if match]
        if len(sizes) < len(found) or not all(sizes):
            self.fail(f"'{value}' is no list of sizes; write them like 8KiB,2MiB", param, ctx)
        return sizes


class Numbers(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """`1,2,4`."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        words = [word.strip() for word in value.split(",")]
        if not all(word.isdecimal() and int(word) for word in words):
            self.fail(f"'{value}' is no list of numbers above 0; write them like 1,2,4", param, ctx)
        return [int(word) for word in words]


def _actors_option(default: int) -> Callable[[_F], _F]:
    return click.option(
        "--actors", metavar="N", type=click.IntRange(1), default=default, show_default=True, help="Actor ranks."
    )


def _time_options(seconds: float, repeats: int) -> Callable[[_F], _F]:
    def add(function: _F) -> _F:
        function = click.option("--json", "as_json", is_flag=True, help="A list of rows on standard output.")(function)
        function = click.option(
            "--repeats", type=click.IntRange(1), default=repeats, show_default=True, help="Of every case."
        )(function)
        return click.option(
            "--seconds",
            type=click.FloatRange(0, min_open=True),
            default=seconds,
            show_default=True,
            help="That each case is measured for.",
        )(function)

    return add


def _run_options(seconds: float, repeats: int, warm: float) -> Callable[[_F], _F]:
    """Same as `_time_options`, with the further options of real runs."""

    def add(function: _F) -> _F:
        function = _time_options(seconds, repeats)(function)
        function = click.option(
            "--cores", metavar="N", type=click.IntRange(1), help="Cores that a run may use; else all."
        )(function)
        return click.option(
            "--warm",
            type=click.FloatRange(0),
            default=warm,
            show_default=True,
            help="Seconds from the first trained batch until it counts.",
        )(function)

    return add


@click.group("bench")
def command() -> None:
    """How fast it is here: each command measures one thing through the real parts and prints a table."""


@command.command("streams")
@click.option("--sizes", type=Sizes(), default="8KiB,256KiB,2MiB,16MiB", show_default=True, help="Of a block.")
@_actors_option(2)
@_time_options(1.0, 5)
def streams(sizes: list[int], actors: int, seconds: float, repeats: int, as_json: bool) -> None:
    """Blocks from actors to a trainer, beside bare mpi4py, ZeroMQ and memcpy."""
    _check_launcher()
    from srlhpc.bench.streams import measure_streams

    _say_if_without_zeromq()
    _show(measure_streams(sizes, actors=actors, seconds=seconds, repeats=repeats), as_json)


@command.command("inference")
@click.option("--rows", type=Sizes(), default="256B,28KiB", show_default=True, help="Of one observation.")
@click.option("--groups", type=Numbers(), default="1,8,32", show_default=True, help="Environments in a group.")
@_actors_option(2)
@_time_options(1.0, 5)
def inference(rows: list[int], groups: list[int], actors: int, seconds: float, repeats: int, as_json: bool) -> None:
    """Requests for actions and their replies, beside bare mpi4py and ZeroMQ. No network is run."""
    _check_launcher()
    from srlhpc.bench.inference import measure_inference

    _say_if_without_zeromq()
    _show(measure_inference(rows, groups, actors=actors, seconds=seconds, repeats=repeats), as_json)


@command.command("ring")
@click.option("--rings", type=Numbers(), default="1,2,4,8,16", show_default=True, help="Groups of an actor.")
@_actors_option(1)
@_run_options(6.0, 1, 2.0)
def ring(
    rings: list[int], actors: int, warm: float, cores: int | None, seconds: float, repeats: int, as_json: bool
) -> None:
    """What a longer environment ring brings for a cheap and a slow simulator, and what theory says."""
    _check_launcher()
    from srlhpc.bench.ring import measure_ring

    _show(measure_ring(rings, actors=actors, measure=_measure(warm, seconds, repeats, cores)), as_json)


@command.command("trainer")
@_actors_option(2)
@_run_options(10.0, 1, 2.0)
def trainer(actors: int, warm: float, cores: int | None, seconds: float, repeats: int, as_json: bool) -> None:
    """Share of its time that a trainer computes, with and without prefetching."""
    _check_launcher()
    from srlhpc.bench.trainer import measure_trainer

    _show(measure_trainer(actors=actors, measure=_measure(warm, seconds, repeats, cores)), as_json)


@command.command("layouts")
@_actors_option(2)
@click.option("--ring", type=click.IntRange(1), default=2, show_default=True, help="Groups of an actor.")
@_run_options(10.0, 1, 2.0)
def layouts(
    actors: int, ring: int, warm: float, cores: int | None, seconds: float, repeats: int, as_json: bool
) -> None:
    """Servers of their own against inline inference and SEED's layout, on the same cores."""
    _check_launcher()
    from srlhpc.bench.layouts import measure_layouts

    _show(measure_layouts(actors=actors, ring=ring, measure=_measure(warm, seconds, repeats, cores)), as_json)


@command.command("end-to-end")
@click.argument("jobs", metavar="[JOB]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Override a setting of the JOBs.")
@_run_options(20.0, 1, 5.0)
def end_to_end(
    jobs: tuple[Path, ...],
    overrides: tuple[str, ...],
    warm: float,
    cores: int | None,
    seconds: float,
    repeats: int,
    as_json: bool,
) -> None:
    """Whole JOBs: steps, CPU time, memory, start. Without JOB: Pong in both precisions, and CartPole."""
    _check_launcher()
    from srlhpc.bench.end_to_end import Case, default_cases, measure_end_to_end

    cases = [Case(job.stem, job, ()) for job in jobs] or default_cases()
    cases = [case._replace(overrides=(*case.overrides, *overrides)) for case in cases]
    _show(measure_end_to_end(cases, measure=_measure(warm, seconds, repeats, cores)), as_json)


@command.command("checkpoint")
@click.option("--megabytes", type=click.IntRange(1), default=100, show_default=True, help="Of the checkpoint.")
@_run_options(10.0, 1, 1.0)
def checkpoint(megabytes: int, warm: float, cores: int | None, seconds: float, repeats: int, as_json: bool) -> None:
    """Trainer time lost to a checkpoint, beside one copy of it in memory."""
    _check_launcher()
    from srlhpc.bench.checkpoint import measure_checkpoint

    _show(measure_checkpoint(megabytes=megabytes, measure=_measure(warm, seconds, repeats, cores)), as_json)


@command.command("replay")
@click.option("--sizes", type=Sizes(), default="1KiB,28KiB", show_default=True, help="Of an observation.")
@click.option("--windows", type=click.IntRange(1), default=256, show_default=True, help="Drawn at once.")
@click.option("--megabytes", type=click.IntRange(1), default=256, show_default=True, help="That a store keeps.")
@_time_options(2.0, 5)
def replay(sizes: list[int], windows: int, megabytes: int, seconds: float, repeats: int, as_json: bool) -> None:
    """Draws from a store of replay, uniform and by priority, beside a bare numpy gather of the same bytes."""
    _check_launcher()
    from srlhpc.bench.replay import measure_replay

    _show(measure_replay(sizes, windows=windows, megabytes=megabytes, seconds=seconds, repeats=repeats), as_json)


@command.command("many-ranks")
@click.option("--ranks", type=click.IntRange(1), default=256, show_default=True, help="Actor ranks.")
@click.option(
    "--step",
    type=click.FloatRange(0, min_open=True),
    default=0.5,
    show_default=True,
    help="Seconds that a simulator sleeps.",
)
@_run_options(20.0, 1, 5.0)
def many_ranks(
    ranks: int, step: float, warm: float, cores: int | None, seconds: float, repeats: int, as_json: bool
) -> None:
    """Many actors with slow simulators on this machine."""
    _check_launcher()
    from srlhpc.bench.many_ranks import measure_many_ranks

    measure = _measure(warm, seconds, repeats, cores)
    _show(measure_many_ranks(ranks=ranks, step_seconds=step, measure=measure), as_json)


def _check_launcher() -> None:
    from srlhpc.launch.preparation import check_launcher

    check_launcher(serial=False)


def _say_if_without_zeromq() -> None:
    from srlhpc.bench.streams import has_zeromq

    if not has_zeromq():
        say("ZeroMQ is not compared with: pyzmq is not installed (pip install 'srlhpc[bench]')")


def _measure(warm: float, seconds: float, repeats: int, cores: int | None) -> Measure:
    import os

    from srlhpc.bench.runs import Measure

    here = len(os.sched_getaffinity(0))
    if cores is not None and cores > here:
        raise UserError(f"--cores {cores}: only {here} may be used here")
    return Measure(warm, seconds, repeats, cores)


def _show(rows: Sequence[Row], as_json: bool) -> None:
    from srlhpc.bench.rows import table

    if as_json:
        click.echo(json.dumps([row.to_json() for row in rows], indent=1))
    else:
        click.echo("\n".join(table(rows)))
