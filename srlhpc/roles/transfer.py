"""The way of a batch from host memory to the device, beside the update before it.

    gathering --begin--> under way --(computing waits)--> on the device, read by updates --reuse--> gathering

Device memory is overwritten only after the computing that read it, host memory only after it was copied.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from srlhpc.roles.lane import Lane, Mark


class Transfer:
    """One copy on the device of the host's tensors, which stays for all uses of the batch."""

    def __init__(self, host: Mapping[str, Tensor], device: torch.device, lane: Lane) -> None:
        """`host` is pinned if `device` is a GPU."""
        self._host, self._lane = host, lane
        self._tensors = {name: torch.empty_like(tensor, device=device) for name, tensor in host.items()}
        self._free = lane.mark()
        self._arrived: Mark | None = None

    def begin(self) -> None:
        """The host's tensors are whole: sends them off."""
        pairs = [(self._tensors[name], tensor) for name, tensor in self._host.items()]
        self._arrived = self._lane.copy(pairs, after=self._free)

    def tensors(self) -> dict[str, Tensor]:
        """On the device, for computing that is queued from now on."""
        assert self._arrived is not None, "nothing was sent off"
        self._lane.wait(self._arrived)
        return self._tensors

    def reuse(self) -> None:
        """The host's tensors may be overwritten from now on; the update that read those of the device is queued."""
        if self._arrived is not None:
            self._arrived.synchronize()
            self._arrived = None
        self._free = self._lane.mark()
