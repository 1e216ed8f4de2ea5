"""The rows that a network acts on, and what several networks did for parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.policies.policy import Acted, Exploration, State


class Rows(NamedTuple):
    """What `Policy.act` takes, N rows of each."""

    observations: Mapping[str, Tensor]
    state: State
    first: Tensor
    action_masks: Tensor | None
    exploration: Exploration

    def some(self, places: Tensor) -> Rows:
        """The rows at some places."""
        return Rows(
            {key: rows[places] for key, rows in self.observations.items()},
            {name: rows[places] for name, rows in self.state.items()},
            self.first[places],
            None if self.action_masks is None else self.action_masks[places],
            {name: rows[places] for name, rows in self.exploration.items()},
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
