"""What a trainer needs of others: who sums over trainers, and who takes parameters to those that act."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srlhpc.algorithms.algorithm import Reducer


class AgreeingReducer(Reducer, Protocol):
    """A reducer that also agrees on small numbers (comm/process_group.py)."""

    def agree(self, flags: Sequence[float]) -> Generator[None, None, list[float]]:
        """Sums of each flag over the policy's trainers."""


class Publisher(Protocol):
    """Where parameters are published (comm/parameters.py)."""

    def publish(self, version: int, write: Callable[[NDArray[np.float32]], None], *, steps: int) -> bool: ...

    def poll(self) -> bool: ...

    @property
    def is_sending(self) -> bool: ...

    def forget(self, address: int) -> None: ...

    def close(self) -> None: ...
