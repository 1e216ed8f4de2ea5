"""Stacks of frames as blocks hold them: every frame once.

A block has T + n frames for the stacks of n frames of its T records and the bootstrap: frames 0 to n - 1 are the stack
of record 0, and frame t + n - 1 is the newest of record t. Where a stack began anew since record 0, its older frames
are not those that lie before, but what the environment fills stacks with.

Letters: T records, n frames of a stack, C axes of columns (environments and agents).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from srlhpc.data.layout import Array, Field
from srlhpc.environment import MOST_FRAMES, Stack


def whole(field: Field) -> Field:
    """A field of a block as a batch holds it: stacks `[T + 1, C, n, ...]` in place of frames `[T + n, C, ...]`."""
    if field.stack is None:
        return field
    frames, axes = field.stack.frames, len(field.axes)
    shape = (field.shape[0] - frames + 1, *field.shape[1:axes], frames, *field.shape[axes:])
    return dataclasses.replace(field, shape=shape, stack=None)


def own_frames(new_stacks: Array) -> Array:
    """How many frames of each stack, counted from the newest, lie in the block one behind the other.

    Args:
        new_stacks: bool `[T + 1, C]`, where stacks begin anew.

    Returns:
        uint8 `[T + 1, C]`: 1 at a beginning and one more at each record behind it, at most 255; 255 before the first.
    """
    records = np.arange(len(new_stacks)).reshape(-1, *[1] * (new_stacks.ndim - 1))
    beginnings = np.maximum.accumulate(np.where(new_stacks, records, -MOST_FRAMES), axis=0)
    return np.minimum(records - beginnings + 1, MOST_FRAMES).astype(np.uint8)


def places_in_stack(own: Array, stack: Stack) -> Array:
    """Which of the n frames that lie where its own would be fill each place of a stack.

    Args:
        own: what `own_frames` says of stacks, any shape.
        stack: as declared.

    Returns:
        int64 `[*own, n]`; -1 stands for a frame of zeros.
    """
    places, oldest = np.arange(stack.frames), stack.frames - own[..., None].astype(np.int64)
    return np.where(places < oldest, -1 if stack.filled_with == "zeros" else oldest, places)


def frames_of(own: Array, stack: Stack) -> Array:
    """Which of a block's T + n frames make each stack.

    Args:
        own: what `own_frames` gives, `[T + 1, C]`.
        stack: as declared.

    Returns:
        int64 `[T + 1, C, n]`; -1 stands for a frame of zeros.
    """
    places = places_in_stack(own, stack)
    records = np.arange(len(own)).reshape(-1, *[1] * own.ndim)
    return np.where(places < 0, -1, records + places)


def build_stack(frames: Array, own: Array, stack: Stack) -> Array:
    """The whole stack of one record.

    Args:
        frames: that lie where its own would be, `[n, C, ...]`.
        own: what `own_frames` says of it, `[C]`.
        stack: as declared.

    Returns:
        `[n, C, ...]`.
    """
    chosen = np.moveaxis(places_in_stack(own, stack), -1, 0)
    entry = (1,) * (frames.ndim - chosen.ndim)
    found = np.take_along_axis(frames, chosen.clip(0).reshape(*chosen.shape, *entry), 0)
    found[chosen < 0] = 0
    return found
