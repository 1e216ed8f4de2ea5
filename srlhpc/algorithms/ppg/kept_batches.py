"""The batches of the policy phases since the last auxiliary phase, in host memory.

Letters: T records of a fragment (burn-in included), B columns of a batch, N batches, M = N x B columns.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.algorithms.host_tensors import zeros
from srlhpc.algorithms.ppg.kept_arrays import TARGETS, column_axis, kept_arrays
from srlhpc.environment import ArraySpec

_COUNT = "count"
_LOG = logging.getLogger(__name__)


class KeptBatches:
    """Room for N batches, which side by side are one batch of M columns.

    Args:
        batch: arrays of one batch, by name.
        batches: N.
    """

    def __init__(self, batch: Mapping[str, ArraySpec], batches: int) -> None:
        self._batches = batches
        self._columns = batch["valid"].shape[1]
        self._arrays = {name: zeros(array.shape, array.dtype) for name, array in kept_arrays(batch, batches).items()}
        self._count = torch.zeros((), dtype=torch.int64)

    @property
    def count(self) -> int:
        """Batches that are kept."""
        return int(self._count)

    @property
    def is_full(self) -> bool:
        return self.count == self._batches

    def keep(self, batch: Batch, returns: Tensor) -> None:
        """Keeps a batch and what its values are to become, float32 `[T, B]` in units of the return."""
        start = self.count * self._columns
        for name, array in self._arrays.items():
            given = returns if name == TARGETS else batch.fields[name]
            axis = column_axis(name)
            room = array.narrow(axis, start, self._columns)
            # Without the bootstrap observation, which is behind the records.
            room.copy_(given[: len(room)] if axis else given)
        self._count += 1

    def forget_since(self, count: int) -> None:
        """Keeps only the first batches, so many."""
        self._count.fill_(count)

    def as_one(self, batch: Batch) -> Batch:
        """All kept batches as one batch on the host, at the version and steps of another one; it is live.

        Its fields are those of `kept_arrays`, so actions, rewards and the bootstrap are not among them.
        """
        assert self.is_full
        return Batch(self._arrays, burn_in_steps=batch.burn_in_steps, version=batch.version, steps=batch.steps)

    def state(self) -> dict[str, Tensor]:
        """All that is kept, live; what is behind `count` batches means nothing."""
        return {_COUNT: self._count, **self._arrays}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave; of other arrays, as after a change of the job, nothing, with a warning."""
        own = self.state()
        if _forms(state) != _forms(own):
            if state:
                _LOG.warning(
                    "the checkpoint's kept batches are of another form than this job's; they are left, and the next "
                    "auxiliary phase comes after %d updates",
                    self._batches,
                )
            self.forget_since(0)
            return
        for name, tensor in own.items():
            tensor.copy_(state[name])


def _forms(state: Mapping[str, Tensor]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    return {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in state.items()}
