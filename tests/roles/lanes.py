"""A lane without a GPU: copies come as late as its marks allow, and the test says what is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor

from srlhpc.roles.training.copy_stream import Lane, Mark


class FakeMark(Mark):
    """How much had been computed when it was made."""

    def __init__(self, place: int, reach: Callable[[], None]) -> None:
        self.place, self.reached = place, False
        self._reach = reach

    def query(self) -> bool:
        return self.reached

    def synchronize(self) -> None:
        self._reach()
        self.reached = True


class LateLane(Lane):
    """Copies nothing before somebody waits for it, or a test lets it."""

    def __init__(self) -> None:
        self.computed = 0
        self.copied: list[FakeMark] = []
        self.after: list[int] = []
        """Of each call of `copy`: what had been computed at the mark that it waits for."""

    def mark(self) -> Mark:
        return FakeMark(self.computed, lambda: None)

    def copy(self, pairs: Iterable[tuple[Tensor, Tensor]], *, after: Mark) -> Mark:
        assert isinstance(after, FakeMark)
        waiting = list(pairs)
        self.after.append(after.place)

        def reach() -> None:
            for target, source in waiting:
                target.copy_(source)
            waiting.clear()

        self.copied.append(FakeMark(self.computed, reach))
        return self.copied[-1]

    def land(self) -> None:
        """Lets all copies come to their ends."""
        for mark in self.copied:
            mark.synchronize()

    def wait(self, mark: Mark) -> None:
        mark.synchronize()
