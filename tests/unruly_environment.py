"""An environment that does in a place of its life what no environment should."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import signal as imported_by_name
from typing import Any, Literal

from srlhpc.environment import Array, Environment, Spaces, Step
from srlhpc.specs.named_modules import EnvironmentSettings
from tests.scripted import Script, Scripted, scripted_spaces


class Settings(EnvironmentSettings):
    """What it does, and when."""

    deed: str
    """One of DEEDS."""
    at: Literal["build", "reset", "step", "close"] = "step"
    """Where it does it: while it is built, at every reset, before every step, when it is closed."""
    interrupts_at: int = 0
    """Before this step somebody presses Ctrl-C; 0: never."""
    diary: str = ""
    """A file that every call of `close` adds a line to."""

    def spaces(self) -> Spaces:
        return scripted_spaces({"agent": ("agent",)})


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def start_simulators() -> None:
    for new_session in (False, True):
        os.posix_spawnp("sleep", ["sleep", "1000"], os.environ, setsid=new_session)
    if os.fork() == 0:
        threading.Event().wait()


def start_by_another() -> None:
    """A simulator whose parent is gone, so that it is nobody's child here."""
    subprocess.run(["sh", "-c", "sleep 1000 &"], check=True)


def cancel() -> None:
    raise asyncio.CancelledError


def panic() -> None:
    """As extensions in Rust do: a BaseException of its own."""
    raise type("PanicException", (BaseException,), {})("index out of bounds")


def clear_and_start() -> None:
    os.environ.clear()
    start_simulators()


def leave_threads() -> None:
    """One that never ends, and one of a pool, which Python waits for elsewhere."""
    threading.Thread(target=threading.Event().wait, name="viewer").start()
    ThreadPoolExecutor(thread_name_prefix="pool").submit(threading.Event().wait)


DEEDS: Mapping[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "ignores": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "ignores by name": lambda: imported_by_name(signal.SIGINT, signal.SIG_IGN),
    "dies": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    "handles": lambda: signal.signal(signal.SIGINT, interrupt),
    "ignores in native code": lambda: ctypes.CDLL(None).signal(int(signal.SIGINT), 1),
    "exits": lambda: sys.exit(0),
    "interrupts itself": lambda: interrupt(0, None),
    "raises": lambda: [][0],
    "leaves threads": leave_threads,
    "starts": start_simulators,
    "starts by another process": start_by_another,
    "clears its variables and starts": clear_and_start,
    "is cancelled": cancel,
    "panics": panic,
}


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:  # noqa: ARG001
    environment = Unruly(num_environments, settings)
    environment.do("build")
    return environment


class Unruly(Scripted):
    def __init__(self, num_environments: int, settings: Settings) -> None:
        super().__init__([[Script(5)]] * num_environments)
        self._settings = settings
        self._steps = 0

    def do(self, at: str) -> None:
        if at == self._settings.at:
            DEEDS[self._settings.deed]()

    def reset(self, seed: int) -> Step:
        self.do("reset")
        return super().reset(seed)

    def step(self, actions: Mapping[str, Array]) -> Step:
        self._steps += 1
        self.do("step")
        if self._steps == self._settings.interrupts_at:
            os.kill(os.getpid(), signal.SIGINT)
        return super().step(actions)

    def close(self) -> None:
        if self._settings.diary:
            with contextlib.suppress(OSError), Path(self._settings.diary).open("a") as diary:
                diary.write("closed\n")
        self.do("close")
