"""A sign of life of a rank that is inside one long piece of work, such as a minibatch, and so cannot report.

A thread looks every few seconds whether the rank's loop has gone round. If it has not, but its processes have computed,
it changes a file, which the coordinator reads before it takes silence for death. A rank that neither goes round nor
computes gets no pulse; its stacks go into its log once, since it hangs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from srlhpc.roles.stillness import write_stacks

PULSE_SECONDS = 10.0
HANGS_SECONDS = 120.0
_LEAST_SHARE = 0.02
"""Share of a core below which a process does not compute: the thread itself and idle libraries need less."""


class Pulse:
    """The pulse of one rank.

    Args:
        path: the file.
        cpu_seconds: used up to now by this process and those that it has started.
        stacks: writes down where all threads are.
    """

    def __init__(
        self,
        path: Path,
        cpu_seconds: Callable[[], float] | None = None,
        stacks: Callable[[], None] = write_stacks,
    ) -> None:
        self._path, self._stacks = path, stacks
        self._cpu_seconds = cpu_seconds or cpu_seconds_of_tree
        self.rounds = 0
        """Rounds of the rank's loop, which counts them."""
        self._rounds_before, self._cpu_before = -1, 0.0
        self._beats = 0
        self._hangs_for = 0.0

    def start(self) -> None:
        """Looks from a thread of its own until the process ends."""
        threading.Thread(target=self._run, name="pulse", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(PULSE_SECONDS)
            self.look()

    def look(self, seconds: float = PULSE_SECONDS) -> None:
        """Beats if the rank has computed without going round since the last look, `seconds` ago."""
        rounds, cpu = self.rounds, self._cpu_seconds()
        went_round, computed = rounds != self._rounds_before, cpu - self._cpu_before
        self._rounds_before, self._cpu_before = rounds, cpu
        if went_round:
            self._hangs_for = 0.0
        elif computed >= _LEAST_SHARE * seconds:
            self._hangs_for = 0.0
            self._beat()
        else:
            self._hang(seconds)

    def _beat(self) -> None:
        self._beats += 1
        # A file server that is away: the next beat may reach it.
        with contextlib.suppress(OSError):
            self._path.write_text(f"{self._beats}\n")

    def _hang(self, seconds: float) -> None:
        before = self._hangs_for
        self._hangs_for += seconds
        if before < HANGS_SECONDS <= self._hangs_for:
            self._stacks()


def cpu_seconds_of_tree(pid: int | None = None) -> float:
    """User and system time of a process and its living descendants (Linux; elsewhere only of this process)."""
    pid = os.getpid() if pid is None else pid
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [
            int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
        ]
    except OSError:
        return time.process_time() if pid == os.getpid() else 0.0
    # User and system time, then those of children that were waited for.
    ticks = sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds_of_tree, children))
