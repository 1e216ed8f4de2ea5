"""The store of a replay rank beside the buffers of cpprb and TorchRL: draws per second and CPU-seconds per million.

    make bench-rivals
    python benchmarks/replay_rivals.py --seconds 2 --repeats 5

Everybody keeps the same number of transitions and draws as many at once, in a process of its own, one after the other,
and again in every round, since what memory costs drifts on machines that are shared.
A store of ours gives eleven further fields of each record beside those that the others have. TorchRL's sum tree is
compiled for one version of torch: with another, as `make bench-rivals` may install, its draws by priority fail.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from srlhpc.bench.replay import kept_transitions, measure_replay
from srlhpc.bench.rows import Reference, Row, Spread, table

HERE = Path(__file__).parent
RIVALS = ("cpprb", "torchrl")


def one_round(python: Path, size: int, arguments: argparse.Namespace) -> list[Row]:
    """Two rows, uniform and by priority, of everybody measured once."""
    own = measure_replay(
        [size], windows=arguments.windows, megabytes=arguments.megabytes, seconds=arguments.seconds, repeats=1
    )
    rows = []
    for row, draw in zip(own, ("uniform", "prioritized"), strict=True):
        others = {name: measure_rival(python, name, draw, size, arguments) for name in RIVALS}
        measured = {name: other for name, other in others.items() if other is not None}
        rows.append(replace(row, reference={**row.reference, **measured}))
    return rows


def together(rows: Sequence[Row]) -> Row:
    """The same row of all rounds: medians and ranges."""
    return replace(
        rows[0],
        rate=_over(row.rate for row in rows),
        cpu_seconds=_over(row.cpu_seconds for row in rows),
        reference={
            name: Reference(
                _over(row.reference[name].rate for row in rows),
                _over(row.reference[name].cpu_seconds for row in rows),
            )
            for name in rows[0].reference
        },
        details={},
    )


def _over(spreads: Iterable[Spread | None]) -> Spread:
    return Spread.of([spread.median for spread in spreads if spread is not None])


def measure_rival(python: Path, buffer: str, draw: str, size: int, arguments: argparse.Namespace) -> Reference | None:
    """Draws per second and CPU-seconds per million draws of one buffer; None if it fails, which is said."""
    options = {
        "size": size,
        "windows": arguments.windows,
        "transitions": kept_transitions(size, arguments.megabytes),
        "seconds": arguments.seconds,
        "repeats": 1,
    }
    command = [str(python), str(HERE / "rivals/replay_buffers.py"), buffer, draw]
    command += [f"--{name}={value}" for name, value in options.items()]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode:
        print(f"{buffer}, {draw}: {process.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    # TorchRL logs to standard output.
    (found,) = json.loads(process.stdout.strip().splitlines()[-1])
    draws = found["count"] * arguments.windows
    rate, cpu = draws / found["wall"], 1e6 * found["cpu"] / draws
    return Reference(Spread.of([rate]), Spread.of([cpu]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1 << 10, 28 << 10], help="bytes of an observation")
    parser.add_argument("--windows", type=int, default=256, help="drawn at once")
    parser.add_argument("--megabytes", type=int, default=256, help="that our store keeps")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rivals", type=Path, default=Path(".venv-rivals"), help="made by make bench-rivals")
    arguments = parser.parse_args()
    python = arguments.rivals.resolve() / "replay/bin/python"
    rows = []
    for size in arguments.sizes:
        rounds = [one_round(python, size, arguments) for _ in range(arguments.repeats)]
        rows += [together(turns) for turns in zip(*rounds, strict=True)]
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
