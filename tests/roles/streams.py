"""A stream without a GPU: copies come as late as its marks allow, and the test says what is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor

from srlhpc.roles.training.copy_stream import CopyStream, Event


class FakeEvent(Event):
    """How much had been computed when it was made."""

    def __init__(self, place: int, reach: Callable[[], None]) -> None:
        self.place, self.reached = place, False
        self._reach = reach

    def query(self) -> bool:
        return self.reached

    def synchronize(self) -> None:
        self._reach()
        self.reached = True


class LateCopyStream(CopyStream):
    """Copies nothing before somebody waits for it, or a test lets it."""

    def __init__(self) -> None:
        self.computed = 0
        self.copied: list[FakeEvent] = []
        self.after: list[int] = []
        """Of each call of `copy`: what had been computed at the event that it waits for."""

    def record_event(self) -> Event:
        return FakeEvent(self.computed, lambda: None)

    def copy(self, pairs: Iterable[tuple[Tensor, Tensor]], *, after: Event) -> Event:
        assert isinstance(after, FakeEvent)
        waiting = list(pairs)
        self.after.append(after.place)

        def reach() -> None:
            for target, source in waiting:
                target.copy_(source)
            waiting.clear()

        self.copied.append(FakeEvent(self.computed, reach))
        return self.copied[-1]

    def land(self) -> None:
        """Lets all copies come to their ends."""
        for event in self.copied:
            event.synchronize()

    def wait(self, event: Event) -> None:
        event.synchronize()
