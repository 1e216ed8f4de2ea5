"""Ends engines of ViZDoom whose process is gone, however it went: `python -m envs._vizdoom_guard MARK FOLDER`.

An engine is a process that waits for its orders without end, and shares memory in /dev/shm. So a second process waits
beside each group of environments until the pipe to it closes, which the kernel sees to.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from srlhpc.specs.child_processes import kill_marked, marked

_MARK = "SRLHPC_VIZDOOM"
"""Environment variable of all engines of a group."""
_SHARED = ("ViZDoomSM", "ViZDoomMQCtr", "ViZDoomMQDoom")
"""Names in /dev/shm, each followed by the engine's own."""
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
"""What ends or warns a run, sent to its whole process group by a terminal, to all of its processes by Slurm."""


class Guard:
    """Starts engines that end with this process, or with `close`.

    They do not hear the signals that end a run, whose last checkpoint may still need them.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="srlhpc-vizdoom-"))
        self._mark = uuid.uuid4().hex
        with _blocked_signals():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "envs._vizdoom_guard", self._mark, str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
                start_new_session=True,
            )

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Within this, one engine is started: in a folder of its own, because it writes to where it stands."""
        os.environ[_MARK] = self._mark
        try:
            with _blocked_signals(), contextlib.chdir(tempfile.mkdtemp(dir=self._folder)):
                yield
        finally:
            del os.environ[_MARK]

    def close(self) -> None:
        """Ends what still runs. May be called twice."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """What is started within this inherits the mask; this process hears them afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def main() -> None:
    """Waits for the end of the other process, then tidies up behind it."""
    mark, folder = sys.argv[1:]
    sys.stdin.buffer.read()
    names = [_name_of(pid) for pid in marked(_MARK, mark)]
    kill_marked(_MARK, mark)
    for name in filter(None, names):
        for shared in _SHARED:
            Path("/dev/shm", shared + name).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _name_of(engine: int) -> str:
    try:
        arguments = Path(f"/proc/{engine}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return ""
    return arguments[arguments.index("+viz_instance_id") + 1] if "+viz_instance_id" in arguments else ""


if __name__ == "__main__":
    main()
