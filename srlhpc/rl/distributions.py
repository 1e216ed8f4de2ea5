"""Action distributions: sampling, log-probabilities and entropy in float32, without the overhead of
`torch.distributions`.

Letters: `...` any leading axes, K choices, P parts of a multi-discrete action, D dimensions of a continuous one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor

FORBIDDEN_LOGIT = -1e9
"""Finite, so that entropy (0 * log 0) and gradients stay finite; its probability underflows to exactly 0."""

_SMALLEST_EXPONENTIAL = 1e-30
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Distribution(ABC):
    """Distributions over actions, one for each entry of the leading axes."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None) -> Tensor:
        """One action each, without gradient; `generator` None uses torch's default one."""

    @abstractmethod
    def mode(self) -> Tensor:
        """The most probable action."""

    @abstractmethod
    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability (or log-density), float32 `[...]`, summed over the parts of an action."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Entropy in nats, float32 `[...]`, summed over the parts of an action."""

    @abstractmethod
    def kl(self, other: Self) -> Tensor:
        """Exact divergence KL(self || other) in nats, float32 `[...]`."""

    @abstractmethod
    def numbers(self) -> Tensor:
        """All that it depends on, float32 `[..., F]` without gradient, to be kept until later."""

    @abstractmethod
    def like(self, numbers: Tensor) -> Self:
        """The distributions that had these `numbers`, of the same form as this one, whose numbers are ignored."""


class Categorical(Distribution):
    """One of K choices.

    Args:
        logits: `[..., K]`, any floating dtype.
        masks: bool `[..., K]`, true = allowed, or None. A row that allows nothing is uniform.
    """

    def __init__(self, logits: Tensor, masks: Tensor | None = None) -> None:
        logits = logits.float()
        if masks is not None:
            logits = logits.masked_fill(~masks, FORBIDDEN_LOGIT)
        self.log_probs = torch.log_softmax(logits, dim=-1)

    def sample(self, generator: torch.Generator | None) -> Tensor:
        """Exponential race: the argmax of p_k / E_k with E_k ~ Exp(1) is distributed as p."""
        probs = self.log_probs.detach().exp()
        race = torch.empty_like(probs).exponential_(generator=generator).clamp_min_(_SMALLEST_EXPONENTIAL)
        return probs.div_(race).argmax(-1)

    def mode(self) -> Tensor:
        return self.log_probs.argmax(-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        return self.log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.log_probs.exp() * self.log_probs).sum(-1)

    def kl(self, other: Self) -> Tensor:
        return (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum(-1)

    def numbers(self) -> Tensor:
        return self.log_probs.detach()

    def like(self, numbers: Tensor) -> Self:
        kept = copy(self)
        kept.log_probs = numbers
        return kept


class MultiCategorical(Distribution):
    """P independent choices at once; actions int64 `[..., P]`.

    Parts are computed side by side; shorter ones are padded to K, the choices of the longest.

    Args:
        logits: `[..., sum(choices)]`, the parts' logits one after the other.
        choices: choices of each part.
        masks: bool `[..., sum(choices)]`, true = allowed, or None. A part that allows nothing is uniform.
    """

    def __init__(self, logits: Tensor, choices: Sequence[int], masks: Tensor | None = None) -> None:
        logits = logits.float()
        if masks is not None:
            logits = logits.masked_fill(~masks, FORBIDDEN_LOGIT)
        longest = max(choices)
        if min(choices) < longest:
            # Less likely than any masked choice: a part whose choices are all masked is uniform over those.
            padding = logits.new_full((*logits.shape[:-1], 1), 2 * FORBIDDEN_LOGIT)
            places = _places_of_parts(tuple(choices), logits.device)
            logits = torch.cat([logits, padding], dim=-1).index_select(-1, places)
        self._parts = Categorical(logits.reshape(*logits.shape[:-1], len(choices), longest))

    def sample(self, generator: torch.Generator | None) -> Tensor:
        return self._parts.sample(generator)

    def mode(self) -> Tensor:
        return self._parts.mode()

    def log_prob(self, actions: Tensor) -> Tensor:
        return self._parts.log_prob(actions).sum(-1)

    def entropy(self) -> Tensor:
        return self._parts.entropy().sum(-1)

    def kl(self, other: Self) -> Tensor:
        return self._parts.kl(other._parts).sum(-1)

    def numbers(self) -> Tensor:
        return self._parts.numbers().flatten(-2)

    def like(self, numbers: Tensor) -> Self:
        kept = copy(self)
        kept._parts = self._parts.like(numbers.reshape(*numbers.shape[:-1], *self._parts.log_probs.shape[-2:]))
        return kept


@lru_cache
@torch.inference_mode(False)
def _places_of_parts(choices: tuple[int, ...], device: torch.device) -> Tensor:
    """Where the padded parts' logits are among those of all parts and one for padding: int64 `[P * K]`."""
    longest, end = max(choices), sum(choices)
    starts = [end_of - size for end_of, size in zip(accumulate(choices), choices, strict=True)]
    places = [
        start + k if k < size else end for start, size in zip(starts, choices, strict=True) for k in range(longest)
    ]
    return torch.tensor(places, device=device)


class DiagonalGaussian(Distribution):
    """A real vector with independent dimensions; actions float32 `[..., D]`, unbounded.

    Args:
        means: `[..., D]`, any floating dtype.
        log_stds: float32 `[D]`, the same for all entries, or `[..., D]`.
    """

    def __init__(self, means: Tensor, log_stds: Tensor) -> None:
        self.means = means.float()
        self.log_stds = log_stds

    def sample(self, generator: torch.Generator | None) -> Tensor:
        means = self.means.detach()
        noise = torch.empty_like(means).normal_(generator=generator)
        return noise.mul_(self.log_stds.detach().exp()).add_(means)

    def mode(self) -> Tensor:
        return self.means.detach()

    def log_prob(self, actions: Tensor) -> Tensor:
        standardized = (actions - self.means) * (-self.log_stds).exp()
        constants = self.log_stds.sum(-1) + self.means.shape[-1] * _HALF_LOG_TWO_PI
        return -0.5 * standardized.square().sum(-1) - constants

    def entropy(self) -> Tensor:
        entropy = self.log_stds.sum(-1) + self.means.shape[-1] * (0.5 + _HALF_LOG_TWO_PI)
        return entropy.expand(self.means.shape[:-1])

    def kl(self, other: Self) -> Tensor:
        variance_ratios = (2 * (self.log_stds - other.log_stds)).exp()
        distances = ((self.means - other.means) * (-other.log_stds).exp()).square()
        return 0.5 * (variance_ratios + distances - 1 - variance_ratios.log()).sum(-1)

    def numbers(self) -> Tensor:
        return torch.cat([self.means, self.log_stds.expand_as(self.means)], dim=-1).detach()

    def like(self, numbers: Tensor) -> Self:
        return type(self)(*numbers.chunk(2, dim=-1))
