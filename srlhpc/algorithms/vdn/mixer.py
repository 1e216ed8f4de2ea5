"""What makes one value of the agents' values.

Letters: A agents, S numbers of a state; `...` any leading axes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Mixer(nn.Module, ABC):
    """Mixes values so that none of them lowers the whole: then the best joint action is the best of each agent."""

    uses_state: bool
    """Whether it looks at the state; else it gets none."""

    @abstractmethod
    def forward(self, values: Tensor, states: Tensor | None) -> Tensor:
        """The team's values, float32 `[...]`.

        Args:
            values: of the agents, float32 `[..., A]`; 0 where an agent is not in the game.
            states: float32 `[..., S]`, or None.
        """


class Sum(Mixer):
    """Q_tot = sum_i Q_i (Sunehag et al. 2018, section 3; arXiv:1706.05296)."""

    uses_state = False

    def forward(self, values: Tensor, states: Tensor | None) -> Tensor:  # noqa: ARG002
        return values.sum(-1)
