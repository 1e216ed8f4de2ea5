"""The share of turns that a rule for agents in turns does not get to see, by hand."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Update
from srlhpc.algorithms.own_turns import OwnTurnsRule
from tests.algorithms.collecting import finish


class Counting(Algorithm):
    """Says how many records are trained."""

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        yield
        return Update({"trained": float(batch.valid.sum())})

    def state(self) -> Mapping[str, Tensor]:
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        pass


def batch_of(*plays: str, after: int, burn_in: int = 0) -> Batch:
    """Columns of letters: `a` acts, `w` waits, `l` shows a last observation; the last is behind the records. An episode
    ends with the record before `l`."""

    def is_one_of(letters: str) -> Tensor:
        return torch.tensor([[letter in letters for letter in column] for column in plays]).T

    valid, ends = is_one_of("a")[:-1], is_one_of("l")[1:]
    none = torch.zeros_like(valid)
    fields = {"valid": valid, "alive": is_one_of("al"), "first": is_one_of(""), "terminated": ends, "truncated": none}
    return Batch({**fields, "rewards": none.float()}, burn_in, version=0, steps=0, after=after)


@pytest.mark.parametrize(
    ("plays", "trained", "left_out"),
    [
        # One step and the two behind it by `turn_steps: 3`: the turn before a longer wait is left out, if no end comes.
        (("awww", "awwa", "awwl", "awaw"), 3, 0.25),
        # Turns in records that are not trained do not count.
        (("awww", "waww", "wwaw", "alww"), 1, 0.5),
        (("wwww", "waww"), 0, 0.0),
    ],
)
def test_share_of_turns_that_are_left_out_of_windows(plays: tuple[str, ...], trained: int, left_out: float) -> None:
    update = OwnTurnsRule(Counting()).update(batch_of(*plays, after=2))
    assert finish(update) == {"trained": trained, "turns_left_out": left_out}


def test_share_of_turns_that_are_left_out_of_a_stream_is_that_at_its_border() -> None:
    update = OwnTurnsRule(Counting()).update(batch_of("awawaw", "wawawa", "wawaww", "wwwaww", after=0))
    assert finish(update) == {"trained": 2 + 2 + 1, "turns_left_out": 3 / 8}
