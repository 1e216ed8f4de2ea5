"""Which of some discrete actions their values choose, and with what probability.

Letters: `...` any leading axes, N rows, K actions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


def allowed(masks: Tensor) -> Tensor:
    """The masks, bool `[..., K]`, but all actions where a row allows none (of an agent that is not in the game)."""
    return masks | ~masks.any(-1, keepdim=True)


def greatest(values: Tensor, masks: Tensor | None) -> Tensor:
    """The allowed action of the greatest value, the first of several, int64 `[...]`.

    Args:
        values: float `[..., K]`.
        masks: bool `[..., K]`, true = allowed, or None.
    """
    if masks is not None:
        values = values.masked_fill(~allowed(masks), -torch.inf)
    return values.argmax(-1)


class Choice(NamedTuple):
    """What was chosen for each row."""

    actions: Tensor
    """int64 `[N]`."""
    log_probs: Tensor
    """Exact log-probabilities of the actions, float32 `[N]`."""


def epsilon_greedy(
    best: Tensor, masks: Tensor | None, epsilons: Tensor, choices: int, generator: torch.Generator
) -> Choice:
    """Draws any allowed action with probability epsilon, and takes the best one else.

    P(a) = epsilon / allowed actions + (1 - epsilon) [a is the best].

    Args:
        best: int64 `[N]`.
        masks: bool `[N, K]`, or None.
        epsilons: float32 `[N]`.
        choices: K.
        generator: of the device of `best`.
    """
    chances = torch.rand(2, len(best), generator=generator, device=best.device)
    if masks is None:
        counts: Tensor | int = choices
        drawn = (chances[1] * choices).long().clamp_(max=choices - 1)
    else:
        free = allowed(masks)
        counts = free.sum(-1)
        # The place of the drawn one among those that are allowed, then among all.
        places = torch.minimum((chances[1] * counts).long(), counts - 1)
        drawn = (free.cumsum(-1) > places.unsqueeze(-1)).int().argmax(-1)
    actions = torch.where(chances[0] < epsilons, drawn, best)
    probabilities = epsilons / counts + (1 - epsilons) * (actions == best)
    return Choice(actions, probabilities.log())
