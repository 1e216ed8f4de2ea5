"""A disk that fails: system calls on paths with a given name raise what a file server or a full disk gives."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from typing import Any

import pytest

_LOOKS = ("stat", "lstat", "listdir", "scandir", "open", "rename", "replace", "unlink", "mkdir", "utime", "link")


class FailingDisk:
    """Raises OSErrors from looks and writes; nothing fails until it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._failing: dict[str, tuple[int, float]] = {}
        self._full_for: Callable[[str], bool] | None = None
        for name in _LOOKS:
            patch.setattr(os, name, self._wrapped(getattr(os, name)))
        self._open = builtins.open
        for module in (builtins, io):
            patch.setattr(module, "open", self._opened)

    def fail(self, name: str, number: int, times: float = float("inf")) -> None:
        """From now on, calls on a path of that last component fail, so many times."""
        self._failing[name] = (number, times)

    def fill(self, holds: Callable[[str], bool] = lambda _path: True) -> None:
        """From now on, nothing can be made or written at paths that `holds`."""
        self._full_for = holds

    def heal(self) -> None:
        self._failing.clear()
        self._full_for = None

    def _check(self, path: object) -> None:
        name = os.path.basename(os.fspath(path)) if isinstance(path, str | os.PathLike) else ""
        number, times = self._failing.get(str(name), (0, 0))
        if times > 0:
            self._failing[str(name)] = (number, times - 1)
            raise OSError(number, os.strerror(number), str(path))

    def _check_room(self, path: object) -> None:
        if self._full_for is not None and self._full_for(str(path)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*arguments: Any, **named: Any) -> Any:
            for argument in arguments[:2]:
                self._check(argument)
            flags = arguments[1] if call.__name__ == "open" else 0
            if call.__name__ in ("mkdir", "link") or flags & os.O_CREAT:
                self._check_room(arguments[0])
            return call(*arguments, **named)

        return checked

    def _opened(self, path: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        self._check(path)
        if set(mode) & set("wax+"):
            self._check_room(path)
        return self._open(path, mode, *arguments, **named)
