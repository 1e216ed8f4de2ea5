"""The foreman's end of a fork server: started before a job is even read, and ended with all its ranks."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from srlhpc.plan.rank_variables import numbers_of_threads, outside_any_world, settings_of_ranks
from srlhpc.ranks import fork_stub
from srlhpc.runs.processes import FORK_SERVER_VARIABLE
from srlhpc.specs.child_processes import die_with_parent, kill_marked


class ForkServer:
    """A process of this machine that forks ranks.

    Args:
        token: names it; every process that it forks has it in its environment.
        process: it.
    """

    def __init__(self, token: str, process: subprocess.Popen[bytes]) -> None:
        self.token, self._process = token, process

    def program(self, program: Sequence[str]) -> list[str]:
        """The command whose process stands for a rank.

        Args:
            program: the command of the rank without it, a module of Python.
        """
        assert program[:2] == [sys.executable, "-m"]
        return [sys.executable, "-I", "-S", str(Path(fork_stub.__file__)), _address(self.token), *program[2:]]

    def close(self) -> list[int]:
        """Kills it, its ranks and what they have started; returns what could not be killed in time."""
        self._process.kill()
        self._process.wait()
        return kill_marked(FORK_SERVER_VARIABLE, self.token)


@contextmanager
def fork_server(*, wanted: bool = True) -> Iterator[ForkServer | None]:
    """A fork server that loads its modules while the caller goes on; call it from the main thread.

    None if it is not wanted, on other systems than Linux, and where there are GPUs: what a process sees of them must be
    set before torch is loaded.
    """
    if not wanted or sys.platform != "linux" or any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists():
        yield None
        return
    token = secrets.token_hex(16)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0" + _address(token))
        listening.listen(socket.SOMAXCONN)
        process = subprocess.Popen(
            [sys.executable, "-m", "srlhpc.ranks.fork_server", str(listening.fileno())],
            stdin=subprocess.DEVNULL,
            # If it fails, the ranks load all by themselves, and say what is wrong.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(token),
            pass_fds=[listening.fileno()],
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    server = ForkServer(token, process)
    try:
        yield server
    finally:
        server.close()


def _address(token: str) -> str:
    """In the abstract namespace of Unix sockets, which leaves no file behind."""
    return f"srlhpc-{token}"


def _environment(token: str) -> dict[str, str]:
    """What libraries read when they are loaded is what the ranks will have."""
    outer = os.environ
    return {
        **outside_any_world(outer),
        **settings_of_ranks(outer),
        **numbers_of_threads(outer, 1),
        FORK_SERVER_VARIABLE: token,
    }
