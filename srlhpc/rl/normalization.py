"""Running mean and variance that travel with a policy's parameters.

Letters: N rows, S size of one row, E elements of a row of which several may be the same feature.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

SMALLEST_STD = 1e-4


class RunningMoments(nn.Module):
    """Mean and variance of the rows merged so far (Chan et al. 1979, "Updating formulae ... for sample variances").

    The statistics are float64. What normalises is `shift` and `scale`, float32 and changed only by `merge`, so that
    every process that got the parameters computes the same bits. Before the first merge they are 0 and 1.

    Without `decay` every row ever merged counts alike. With it, every merge counts alike whatever its rows, and the
    merge before the last counts `decay` as much as the last, and so on. That is the exponential moving average
    m <- decay m + (1 - decay) x of the first and second moment, divided by 1 - decay^n after n merges (the bias
    correction of Kingma and Ba 2015, arXiv:1412.6980); here `count` is (1 - decay^n) / (1 - decay).

    Args:
        size: S.
        decay: in (0, 1), or None.
        smallest_std: a smaller standard deviation is taken as this.
    """

    count: Tensor
    mean: Tensor
    m2: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, size: int, *, decay: float | None = None, smallest_std: float = SMALLEST_STD) -> None:
        super().__init__()
        self.size = size
        self._decay, self._smallest_std = decay, smallest_std
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("m2", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("shift", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    @property
    def sums_size(self) -> int:
        """Numbers in the vector that `sums` gives."""
        return 1 + 2 * self.size

    @torch.no_grad()
    def sums(self, rows: Tensor, valid: Tensor) -> Tensor:
        """What `merge` takes, to be added over trainers first.

        Deviations are taken from the running mean (equal on all trainers), which keeps the sums of squares small.

        Args:
            rows: `[N, S]`.
            valid: bool `[N]`; other rows count in nothing.

        Returns:
            float64 `[1 + 2 S]`: count, sums and sums of squares of the deviations.
        """
        deviations = torch.where(valid.unsqueeze(-1), rows.double() - self.mean, 0.0)
        count = valid.sum(dtype=torch.float64).reshape(1)
        return torch.cat([count, deviations.sum(0), deviations.square().sum(0)])

    @torch.no_grad()
    def merge(self, sums: Tensor) -> None:
        """Takes in rows; `sums` were computed about the present mean. Without rows nothing changes."""
        added, totals, squares = sums[0], sums[1 : 1 + self.size], sums[1 + self.size :]
        if added.item() == 0:
            return
        offset = totals / added
        if self._decay is not None:
            # A merge counts as one, whatever its rows: what is merged are their moments, not their sums.
            totals, squares, added = offset, squares / added, torch.ones_like(added)
            self.count *= self._decay
            self.m2 *= self._decay
        count = self.count + added
        # The squares about the rows' own mean, and what the distance between the two means adds.
        self.m2 += squares - offset * totals + offset.square() * self.count * added / count
        self.mean += offset * added / count
        self.count.copy_(count)
        self.shift.copy_(self.mean)
        self.scale.copy_((self.m2 / count).clamp_min(0.0).sqrt())
        self.scale.clamp_min_(self._smallest_std)

    def normalize(self, rows: Tensor) -> Tensor:
        """(rows - mean) / standard deviation, float32 `[..., S]`."""
        return (rows - self.shift) / self.scale

    def denormalize(self, rows: Tensor) -> Tensor:
        """The inverse of `normalize`."""
        return rows * self.scale + self.shift


class SharedMoments(RunningMoments):
    """Moments of rows in which several elements are the same feature, such as the speeds of all entities of a set.

    A feature's moments in a row are the means over its elements, so that features of different multiplicity share one
    count of rows.

    Args:
        features: feature of each of the E elements, 0 .. S - 1, none left out.
        decay, smallest_std: as in `RunningMoments`.
    """

    features: Tensor
    shares: Tensor

    def __init__(
        self, features: Sequence[int], *, decay: float | None = None, smallest_std: float = SMALLEST_STD
    ) -> None:
        super().__init__(max(features) + 1, decay=decay, smallest_std=smallest_std)
        index = torch.tensor(features)
        self.register_buffer("features", index, persistent=False)
        self.register_buffer("shares", 1.0 / index.bincount().double()[index], persistent=False)

    @torch.no_grad()
    def sums(self, rows: Tensor, valid: Tensor) -> Tensor:
        """Same as in `RunningMoments`; rows are `[N, E]`, sums `[1 + 2 S]`."""
        deviations = torch.where(valid.unsqueeze(-1), rows.double() - self.mean[self.features], 0.0)
        count = valid.sum(dtype=torch.float64).reshape(1)
        return torch.cat([count, self._by_feature(deviations.sum(0)), self._by_feature(deviations.square_().sum(0))])

    def _by_feature(self, elements: Tensor) -> Tensor:
        return elements.new_zeros(self.size).index_add_(0, self.features, elements * self.shares)

    def normalize(self, rows: Tensor) -> Tensor:
        """(rows - mean) / standard deviation of each element's feature, float32 `[..., E]`."""
        return (rows - self.shift[self.features]) / self.scale[self.features]

    def denormalize(self, rows: Tensor) -> Tensor:
        """The inverse of `normalize`."""
        return rows * self.scale[self.features] + self.shift[self.features]
