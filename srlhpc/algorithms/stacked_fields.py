"""Fields of a batch that holds every frame of a stack once: stacks are made where they are read.

Letters: T records of a fragment, B columns, n frames of a stack, N places, F frames of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class FrameStacks:
    """The stacks of one observation."""

    frames: Tensor
    """`[F + 1, ...]`; the last are zeros."""
    places: Tensor
    """int64 `[S, n]`: which frames make each of S stacks."""
    shape: tuple[int, ...]
    """What a batch has: `[T + 1, B, n, ...]`; S = (T + 1) x B, in this order."""

    def whole(self) -> Tensor:
        """All stacks."""
        return self._gathered(self.places).view(self.shape)

    def of(self, places: Tensor) -> Tensor:
        """Some of them, `[N, n, ...]`, by their places t * B + b, int64 `[N]`."""
        return self._gathered(self.places.index_select(0, places)).view(len(places), *self.shape[2:])

    def _gathered(self, places: Tensor) -> Tensor:
        return self.frames.index_select(0, places.flatten())


class StackedFields(Mapping[str, Tensor]):
    """Every field by name; a field of stacks is made whole when it is first read, and kept."""

    def __init__(self, plain: Mapping[str, Tensor], stacks: Mapping[str, FrameStacks]) -> None:
        self._known = dict(plain)
        self._stacks = dict(stacks)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._known:
            self._known[name] = self._stacks[name].whole()
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._stacks

    def __iter__(self) -> Iterator[str]:
        return iter({**self._known, **self._stacks})

    def __len__(self) -> int:
        return len(self._known.keys() | self._stacks)

    def at(self, name: str, places: Tensor) -> Tensor:
        """A field at places t * B + b, int64 `[N]`: `[N, ...]`. No other stacks are made."""
        if name in self._stacks:
            return self._stacks[name].of(places)
        return at(self._known[name], places)


def at(field: Tensor, places: Tensor) -> Tensor:
    """A field `[T, B, ...]` at places t * B + b, int64 `[N]`: `[N, ...]`."""
    return field.flatten(0, 1).index_select(0, places)
