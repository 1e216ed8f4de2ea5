"""Gathers blocks into one contiguous time-major batch, field by field.

Letters: T records of a fragment, E copies, A agents, K blocks of a batch, B = K x E x A columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.comm.channel import Message
from srlhpc.data.blocks import BlockHeader
from srlhpc.data.layout import Layout
from srlhpc.rl.policy_lag import PolicyLag, policy_lag
from srlhpc.roles.training.copy_stream import CopyStream, Transfer

_PER_FRAGMENT = ("state.", "final_state.")
_COUNTS = ("filled", "valid", "steps", "oldest_version")


class Staging:
    """Room for one batch: in host memory and, with a stream, on the device."""

    def __init__(
        self, layout: Layout, blocks: int, columns: int, device: torch.device, stream: CopyStream | None = None
    ) -> None:
        """Makes the room.

        Args:
            layout: of a block.
            blocks: K.
            columns: E x A of one block.
            device: of the batch.
            stream: how a full batch gets there at once, beside the update before; None: the device is the CPU.
        """
        assert device.type == "cpu" or stream is not None
        self._blocks, self._columns = blocks, columns
        self._tensors: dict[str, Tensor] = {}
        for field in layout.fields:
            dtype = torch.from_numpy(np.empty(0, field.dtype)).dtype
            shape = self._shape(field.name, field.shape)
            self._tensors[field.name] = torch.zeros(shape, dtype=dtype, pin_memory=device.type == "cuda")
        self._arrays = {name: tensor.numpy() for name, tensor in self._tensors.items()}
        self._transfer = Transfer(self._tensors, device, stream) if stream is not None else None
        self.clear()

    def _shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        columns = self._blocks * self._columns
        if name == "versions":
            return (*shape, columns)
        if name.startswith(_PER_FRAGMENT):
            return (columns, *shape[2:])
        return (shape[0], columns, *shape[3:])

    def clear(self) -> None:
        """Empties it, once the last update of its batch has ended; the next block goes first."""
        if self._transfer is not None:
            self._transfer.reuse()
        self.filled = 0
        self.valid = 0
        self.steps = 0
        self.oldest_version = 0

    @property
    def columns(self) -> int:
        """B, fragments of a whole batch."""
        return self._blocks * self._columns

    @property
    def blocks(self) -> int:
        """K, blocks of a whole batch."""
        return self._blocks

    @property
    def is_full(self) -> bool:
        return self.filled == self._blocks

    def add(self, block: Message) -> None:
        """Copies a block into the next columns."""
        here = slice(self.filled * self._columns, (self.filled + 1) * self._columns)
        for name, source in block.fields.items():
            target = self._arrays[name]
            if name == "versions":
                target[:, here] = source[:, None]
            elif name.startswith(_PER_FRAGMENT):
                target[here] = source.reshape(self._columns, *source.shape[2:])
            else:
                target[:, here] = source.reshape(source.shape[0], self._columns, *source.shape[3:])
        oldest = int(block.header[BlockHeader.OLDEST_VERSION])
        self.oldest_version = min(oldest, self.oldest_version) if self.filled else oldest
        self.filled += 1
        self.valid += int(block.header[BlockHeader.VALID])
        self.steps += int(block.header[BlockHeader.STEPS])
        self._send_if_full()

    def _send_if_full(self) -> None:
        if self._transfer is not None and self.is_full:
            self._transfer.begin()

    def lag(self, version: int) -> PolicyLag:
        """Policy lag of the batch at a trainer's version."""
        return policy_lag(version, self._tensors["versions"], self._tensors["valid"])

    def save_state(self) -> dict[str, Any]:
        """A copy of what is in it."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return counts | {"fields": {name: array.copy() for name, array in self._arrays.items()}}

    def load_state(self, state: Mapping[str, Any]) -> bool:
        """Takes back what `save_state` gave; false, and nothing is changed, if it is of other shapes."""
        fields: Mapping[str, Any] = state["fields"]
        shapes = {name: array.shape for name, array in self._arrays.items()}
        if {name: np.shape(array) for name, array in fields.items()} != shapes:
            return False
        self.clear()
        for name, array in fields.items():
            self._arrays[name][...] = array
        for name in _COUNTS:
            setattr(self, name, int(state[name]))
        self._send_if_full()
        return True

    def batch(self, *, version: int, steps: int, burn_in: int, is_first_use: bool) -> Batch:
        """The batch on the device: this memory, so do not clear before the update has ended."""
        tensors = self._tensors if self._transfer is None else self._transfer.tensors()

        def named(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

        return Batch(
            observations=named("obs."),
            actions=tensors["actions"],
            log_probs=tensors["log_probs"],
            rewards=tensors["rewards"],
            terminated=tensors["terminated"],
            truncated=tensors["truncated"],
            first=tensors["first"],
            valid=tensors["valid"],
            versions=tensors["versions"],
            outputs=named("out."),
            state=named("state."),
            chunk_states=named("chunk_state."),
            final_state=named("final_state."),
            action_masks=tensors.get("action_masks"),
            burn_in_steps=burn_in,
            version=version,
            steps=steps,
            is_first_use=is_first_use,
        )
