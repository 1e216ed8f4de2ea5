"""In which order a trainer goes through recorded episodes: fragments of them, each row once an epoch. Pure.

Letters: M rows, T records of a fragment, F fragments of an epoch, B fragments of a draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Fragments(NamedTuple):
    """What `Episodes.windows` takes."""

    starts: Indices
    """`[B]`: rows."""
    lengths: Indices
    """`[B]`: T, or what is left for the last fragment of an epoch."""


class EpochDraws:
    """Cuts M rows, whose last is followed by the first, into F fragments and draws these in a new order every epoch.

    Where the cuts lie is drawn anew too, so that no record is always the first of its fragment.

    Args:
        rows: M.
        records: T.
        seed: of the orders of all epochs.
    """

    def __init__(self, rows: int, records: int, seed: int) -> None:
        self._rows, self._records, self._seed = rows, records, seed
        self._epoch = self._position = 0
        self._shuffle()

    @property
    def epoch(self) -> int:
        """Epochs that are over."""
        return self._epoch

    @property
    def fragments(self) -> int:
        """F."""
        return -(-self._rows // self._records)

    def skip(self, count: int) -> None:
        """Goes on as after so many fragments more."""
        passed = self._epoch * self.fragments + self._position + count
        self._epoch, self._position = divmod(passed, self.fragments)
        self._shuffle()

    def _shuffle(self) -> None:
        # Epoch by epoch from the seed, so that nothing else has to be kept of it.
        generator = np.random.default_rng([self._seed, self._epoch])
        self._first = int(generator.integers(self._rows))
        self._order: Indices = generator.permutation(self.fragments)

    def draw(self, count: int) -> Fragments:
        """The next B fragments; where an epoch ends, the next one goes on."""
        parts = []
        while count:
            taken = min(count, self.fragments - self._position)
            parts.append(self._cut(self._order[self._position : self._position + taken]))
            self._position += taken
            count -= taken
            if self._position == self.fragments:
                self._epoch, self._position = self._epoch + 1, 0
                self._shuffle()
        return Fragments(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _cut(self, numbers: Indices) -> Fragments:
        starts = numbers * self._records
        return Fragments((self._first + starts) % self._rows, np.minimum(self._records, self._rows - starts))

    def save_state(self) -> dict[str, Any]:
        """All that further draws depend on; rows and records only to be compared."""
        cut = {"rows": self._rows, "records": self._records}
        return {"seed": self._seed, "epoch": self._epoch, "position": self._position, **cut}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state.

        Raises:
            ValueError: it is one of other rows or records.
        """
        seed, epoch, position = (int(state[name]) for name in ("seed", "epoch", "position"))
        rows, records = (int(state.get(name, own)) for name, own in (("rows", self._rows), ("records", self._records)))
        if (rows, records) != (self._rows, self._records) or not 0 <= position < self.fragments:
            raise ValueError(
                f"{rows:,} rows in fragments of {records:,} were gone through before, not {self._rows:,} in fragments "
                f"of {self._records:,}"
            )
        self._seed, self._epoch, self._position = seed, epoch, position
        self._shuffle()
