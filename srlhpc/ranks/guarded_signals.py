"""Keeps this process's own answers to signals in place, whatever an environment, or a library of its, sets.

Python's calls are answered as if they had worked. What native code sets is set back by `restore`, which the loop calls
that also calls the environment.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | None

log = logging.getLogger(__name__)

# `signal.signal` looks it up here at every call, so those who have imported that function by name are kept out too.
_native = importlib.import_module("_signal")
_set: Callable[[int, Handler], Handler] = _native.signal


def _plain(handler: Handler) -> Handler:
    """SIG_IGN and SIG_DFL as the numbers that they are."""
    return int(handler) if isinstance(handler, int) else handler


class _Guard:
    def __init__(self, handlers: Mapping[int, Handler]) -> None:
        self.handlers = {number: _plain(handler) for number, handler in handlers.items()}
        self._pretended = dict(self.handlers)
        self._pid = os.getpid()

    def set(self, number: int, handler: Handler) -> Handler:
        """Stands in for `signal.signal`. Processes that were forked may do as they like."""
        is_ours = os.getpid() == self._pid and threading.current_thread() is threading.main_thread()
        if not is_ours or number not in self.handlers or not (callable(handler) or isinstance(handler, int)):
            return _set(number, handler)
        before, self._pretended[number] = self._pretended[number], handler
        if before == self.handlers[number]:
            name = signal.Signals(number).name
            log.warning("the environment sets a handler of its own for %s; it is left out here", name)
        return before


_guards: list[_Guard] = []


@contextmanager
def guarded(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Sets these handlers, by signal, and lets nobody else of this process change them; call it from the main thread.

    Afterwards the handlers are again what they were.
    """
    guard = _Guard(handlers)
    before = {number: _set(number, handler) for number, handler in guard.handlers.items()}
    _guards.append(guard)
    _native.signal = guard.set  # type: ignore[attr-defined]
    try:
        yield
    finally:
        _guards.remove(guard)
        _native.signal = _guards[-1].set if _guards else _set  # type: ignore[attr-defined]
        for number, handler in before.items():
            # None: set by native code, and not to be set back from here.
            if handler is not None:
                _set(number, handler)


def restore() -> None:
    """Sets the guarded handlers again, in case that native code has replaced them."""
    for guard in _guards:
        for number, handler in guard.handlers.items():
            _set(number, handler)
