"""The generators of the process on each rank of a run over MPI: its own at each start, and the same when repeated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from srlhpc.ranks import rank
from srlhpc.ranks.global_generators import OwnGenerators
from tests.drawing_environment import draw


class Enough(Exception):
    """The rank would begin to play."""


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What environments would draw while they are built, and when they begin to play."""
    numbers: list[float] = []

    def build_roles(_context: Any) -> list[Any]:
        numbers.extend(draw())
        # Building moves them, and not always equally far.
        for _ in numbers:
            draw()
        return []

    def build_reporter(*_: Any) -> Any:
        numbers.extend(draw())
        raise Enough

    monkeypatch.setattr(rank, "build_roles", build_roles)
    monkeypatch.setattr(rank, "build_reporter", build_reporter)
    return numbers


def start(number: int, restart: int, seed: int) -> None:
    plan = SimpleNamespace(spec=SimpleNamespace(seed=seed))
    context: Any = SimpleNamespace(here=SimpleNamespace(rank=number), attempt=None, plan=plan, restart=restart)
    with OwnGenerators(0), pytest.raises(Enough):
        rank._play(context, [])


def test_ranks_draw_what_their_number_start_and_seed_say(drawn: list[float]) -> None:
    for _ in range(2):
        for number, restart, seed in ((1, 0, 7), (2, 0, 7), (1, 1, 7), (1, 0, 8)):
            start(number, restart, seed)
    half = len(drawn) // 2
    assert drawn[:half] == drawn[half:]
    # Two moments of four starts, three generators each.
    assert len(set(drawn)) == half == 24
