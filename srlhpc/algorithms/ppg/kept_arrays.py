"""Which arrays of a batch are kept for the auxiliary phase, known without torch.

Letters: T records of a fragment (burn-in included), C chunks, B columns of a batch, N batches, M = N x B columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from srlhpc.data.blocks import CHUNK_STATE, OBSERVATION, STATE
from srlhpc.environment import ArraySpec

TARGETS = "targets"
"""What values are to become, in units of the return: float32 `[T, M]`, the only array that no batch has."""
_SEEN = ("first", "action_masks", "valid")


def column_axis(name: str) -> int:
    """Which axis of a kept array has the columns."""
    return 0 if name.startswith(STATE) else 1


def kept_arrays(batch: Mapping[str, ArraySpec], batches: int) -> dict[str, ArraySpec]:
    """What is kept of so many batches, as one batch of M columns, by name.

    Observations, `first` and masks without the bootstrap, `[T, M, ...]`; recurrent states `[M, ...]`, those of later
    chunks `[C - 1, M, ...]`; dtypes are those of the batch.
    """
    return dict(_kept(batch, batches))


def _kept(batch: Mapping[str, ArraySpec], batches: int) -> Iterator[tuple[str, ArraySpec]]:
    records, columns = batch["valid"].shape
    for name, array in batch.items():
        if name.startswith(STATE):
            yield name, ArraySpec((batches * columns, *array.shape[1:]), array.dtype)
        elif name.startswith(CHUNK_STATE):
            yield name, ArraySpec((array.shape[0], batches * columns, *array.shape[2:]), array.dtype)
        elif name.startswith(OBSERVATION) or name in _SEEN:
            yield name, ArraySpec((records, batches * columns, *array.shape[2:]), array.dtype)
    yield TARGETS, ArraySpec((records, batches * columns), "float32")
