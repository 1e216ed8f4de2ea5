"""The rows that a network acts on, and what several networks did for parts of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.policies.policy import Acted, Exploration, State

Change = Callable[[Tensor], Tensor]


class Rows(NamedTuple):
    """What `Policy.act` takes, N rows of each."""

    observations: Mapping[str, Tensor]
    state: State
    first: Tensor
    action_masks: Tensor | None
    exploration: Exploration

    def some(self, places: Tensor) -> Rows:
        """The rows at some places."""
        return self.each(lambda rows: rows[places])

    def each(self, change: Change) -> Rows:
        """All tensors changed alike."""
        return Rows(
            {key: change(rows) for key, rows in self.observations.items()},
            {name: change(rows) for name, rows in self.state.items()},
            change(self.first),
            None if self.action_masks is None else change(self.action_masks),
            {name: change(rows) for name, rows in self.exploration.items()},
        )


def each(acted: Acted, change: Change) -> Acted:
    """All tensors of what was done changed alike."""
    return Acted(
        change(acted.actions),
        change(acted.log_probs),
        {name: change(rows) for name, rows in acted.outputs.items()},
        {name: change(rows) for name, rows in acted.state.items()},
    )


def gathered(parts: Sequence[Acted], places: Tensor) -> Acted:
    """What was done for parts of some rows, as if for all.

    Args:
        parts: one after the other.
        places: `[N]`: where each row is when the parts lie side by side.
    """

    def joined(tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(tensors))[places]

    return Acted(
        joined([part.actions for part in parts]),
        joined([part.log_probs for part in parts]),
        {name: joined([part.outputs[name] for part in parts]) for name in parts[0].outputs},
        {name: joined([part.state[name] for part in parts]) for name in parts[0].state},
    )
