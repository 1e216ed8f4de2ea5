"""Arrays of a trainer's batch: what blocks, or messages of windows, are gathered into, field by field.

Letters: K blocks or messages of a batch, E environments, A agents, N windows of a message, B = K x E x A or K x N
columns; where columns are joint B = K x E or K x N, and A belongs to each entry.
"""

from __future__ import annotations

import math

from srlhpc.data.blocks import NEW_STACKS
from srlhpc.data.layout import Axis, Field, Layout
from srlhpc.data.stacks import whole
from srlhpc.environment import ArraySpec

_COLUMNS = (Axis.ENVIRONMENT, Axis.AGENT, Axis.COLUMN)


def column_axes(layout: Layout) -> tuple[Axis, ...]:
    """What becomes one axis, the columns of the batch."""
    counted = {axis for field in layout.fields for axis in field.axes}
    return tuple(axis for axis in _COLUMNS if axis in counted)


def batch_columns(layout: Layout, blocks: int) -> int:
    """B of so many blocks or messages."""
    return blocks * math.prod(layout.size(axis) for axis in column_axes(layout))


def gathered_fields(layout: Layout) -> list[Field]:
    """The fields of a block or message that batches have, as `layout` has them."""
    return [field for field in layout.fields if field.name != NEW_STACKS]


def before_columns(field: Field) -> int:
    """How many axes lie before the columns."""
    return sum(axis not in _COLUMNS for axis in field.axes)


def batch_array(field: Field, columns: int) -> ArraySpec:
    """One field in a batch: environments and agents, or windows, become one axis, the columns.

    Stacks are whole. In a field without columns, which all of a block share, they come behind the other axes.
    """
    field = whole(field)
    shape = (*field.shape[: before_columns(field)], columns, *field.shape[len(field.axes) :])
    return ArraySpec(shape, field.dtype)


def batch_arrays(layout: Layout, blocks: int) -> dict[str, ArraySpec]:
    """All arrays of a batch, by name: as `srlhpc.algorithms.algorithm.Batch.fields` has them."""
    columns = batch_columns(layout, blocks)
    return {field.name: batch_array(field, columns) for field in gathered_fields(layout)}
