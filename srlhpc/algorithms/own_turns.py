"""Learning rules for agents that take turns: a rule gets batches in which each column is the sequence of its own turns.

Letters: T records of a fragment or window, B columns.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Update
from srlhpc.algorithms.device_numbers import to_host_list
from srlhpc.data.blocks import CHUNK_STATE, FINAL_STATE, STATE
from srlhpc.data.windows import GENERATION, PROBABILITY, SLOT
from srlhpc.rl.turns import own_turns

_OF_COLUMNS = (STATE, FINAL_STATE, CHUNK_STATE, SLOT, GENERATION, PROBABILITY)
"""Beginnings of the names of fields without an axis of records."""


LEFT_OUT = "turns_left_out"
"""Name of the metric: share of the turns in trained records whose outcome was not known, which were not trained."""


class OwnTurnsRule(Algorithm):
    """A rule that learns from turns as from the records of agents that always act.

    It adds the metric `turns_left_out`, of this trainer's batch alone.
    """

    def __init__(self, rule: Algorithm) -> None:
        self._rule = rule

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        own = of_own_turns(batch)
        share = _share_left_out(batch, own)
        update = yield from self._rule.update(own)
        (left_out,) = yield from to_host_list(share.reshape(1))
        return replace(update, metrics={**update.metrics, LEFT_OUT: left_out})

    def state(self) -> Mapping[str, Tensor]:
        return self._rule.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._rule.load_state(state)


def _share_left_out(batch: Batch, own: Batch) -> Tensor:
    """A number: of all turns that could be trained, the part that is not valid among the `own` ones; 0 of none."""
    turns = batch.valid[batch.burn_in_steps : len(batch.valid) - batch.after].sum()
    return torch.where(turns > 0, 1.0 - own.valid.sum() / turns, 0.0)


def of_own_turns(batch: Batch) -> Batch:
    """The batch with every column's turns side by side, from record 0 on (rl/turns.py).

    What warms memory up and what is there for later sums is not valid instead of being apart, so memory has gradients
    from the first record on. `cut` says where the last observation follows.
    """
    cut = batch.fields.get("cut")
    turns = own_turns(
        batch.rewards,
        batch.terminated,
        batch.truncated,
        torch.zeros_like(batch.terminated) if cut is None else cut,
        batch.valid,
        batch.alive,
    )
    records = len(batch.rewards)
    columns = torch.arange(turns.places.shape[1], device=turns.places.device)

    def moved(name: str, array: Tensor) -> Tensor:
        if name.startswith(_OF_COLUMNS):
            return array
        places = turns.places if len(array) > records else turns.places[:-1].clamp(max=records - 1)
        return array[places, columns]

    fields = {name: moved(name, array) for name, array in batch.fields.items()}
    places = turns.places[:-1]
    is_trained = (places >= batch.burn_in_steps) & (places < records - batch.after)
    fields |= {
        "rewards": turns.rewards,
        "terminated": turns.terminated,
        "truncated": turns.truncated,
        "valid": turns.valid & is_trained,
        "cut": turns.cut,
        # Behind the last observation memory need not begin anew.
        "first": fields["first"] & turns.seen,
    }
    return replace(batch, fields=fields, burn_in_steps=0, after=0)
