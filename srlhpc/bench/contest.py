"""Ways of doing the same thing, measured in turns so that noise hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from srlhpc.bench.in_world import Spent, agreed, timed
from srlhpc.bench.rows import Reference, Row, Spread
from srlhpc.comm.mpi.world import MpiWorld

Way = Callable[[int], None]
"""Does so many of whatever it is, on every rank."""


def contest(
    world: MpiWorld, ways: Mapping[str, Way], *, seconds: float, repeats: int, first: int
) -> dict[str, dict[str, Any]]:
    """Runs every way `repeats` times for about so many seconds.

    Args:
        world: all of whose ranks call this.
        ways: to do it, by name, in the order of the turns.
        seconds: that one repeat should take.
        repeats: of each way.
        first: how many to do in the first, unmeasured round, which also tells how many fit in the time.

    Returns:
        Way to `count` and `spent`, one pair (wall, CPU seconds) for each repeat.
    """
    counts = {}
    for name, way in ways.items():
        # The very first round also pays for connections and untouched memory.
        timed(world, partial(way, first))
        once = timed(world, partial(way, first))
        counts[name] = agreed(world, max(first, int(first * seconds / max(once.wall, 1e-6))))
    spent: dict[str, list[Spent]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            spent[name].append(timed(world, partial(way, counts[name])))
    return {name: {"count": counts[name], "spent": spent[name]} for name in ways}


def spreads(found: Mapping[str, Any], amount: float) -> tuple[Spread, Spread]:
    """Rate and CPU-seconds of one way per unit, where one of its `count` is `amount` units."""
    total = found["count"] * amount
    spent: Sequence[Sequence[float]] = found["spent"]
    return Spread.of([total / wall for wall, _ in spent]), Spread.of([cpu / total for _, cpu in spent])


def row_of(
    found: Mapping[str, Mapping[str, Any]],
    own: str,
    title: tuple[str, str],
    amount: float,
    *,
    rate: tuple[float, str],
    cpu: tuple[float, str],
) -> Row:
    """The row of one way, the others beside it.

    Args:
        found: of all ways, from `contest`.
        own: the way that the row is about.
        title: name and size of the row.
        amount: what one of the counted is, in the unit that rates are measured in.
        rate: factor to the unit that is shown, and its name.
        cpu: the same for CPU-seconds.
    """

    def figures(which: str) -> tuple[Spread, Spread]:
        rates, cpus = spreads(found[which], amount)
        return Spread(*(value * rate[0] for value in rates)), Spread(*(value * cpu[0] for value in cpus))

    beside = {other: Reference(*figures(other)) for other in found if other != own}
    return Row(*title, figures(own)[0], rate[1], figures(own)[1], cpu[1], beside)
