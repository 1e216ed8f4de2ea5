"""A GPU's share of a checkpoint in host memory, copied there while training goes on."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from srlhpc.data.layout import Array
from srlhpc.roles.lane import Lane, Mark

Groups = Mapping[str, Mapping[str, Tensor]]
"""Named tensors of several groups (`part_tensors`)."""


class PartCopy:
    """Host memory for one copy of a trainer's tensors."""

    def __init__(self, tensors: Groups, lane: Lane) -> None:
        """`tensors` are like those that will be copied."""
        self._lane = lane
        self._host = {
            group: {
                name: torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.device.type == "cuda")
                for name, tensor in named.items()
            }
            for group, named in tensors.items()
        }
        self._copied: Mark | None = None
        self._kept: list[Tensor] = []

    def begin(self, tensors: Groups) -> dict[str, dict[str, Array]]:
        """The arrays that will hold the tensors as they are now, once `has_landed`, until the next `begin`."""
        # The device copies within itself in no time, so that the next update need not wait for the way to the host.
        kept = [(self._host[group][name], t.clone()) for group, named in tensors.items() for name, t in named.items()]
        self._copied = self._lane.copy(kept, after=self._lane.mark())
        self._kept = [tensor for _, tensor in kept]
        return {group: {name: t.numpy() for name, t in named.items()} for group, named in self._host.items()}

    def has_landed(self) -> bool:
        """Whether the arrays are whole."""
        if self._copied is None or not self._copied.query():
            return False
        self._kept.clear()
        return True
