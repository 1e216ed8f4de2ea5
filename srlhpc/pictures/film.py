"""What shows episodes: frames in, a file out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from srlhpc.environment import Array


class Film(ABC):
    """Takes the frames of episodes; use it in a `with` statement. After an error there is no file."""

    most_episodes: ClassVar[float] = math.inf
    """How many episodes are shown: the first ones."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def add(self, frame: Array) -> None:
        """Adds a frame, uint8 `[height, width, 3]`."""

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...
