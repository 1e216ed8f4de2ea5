"""The foreman's end of a fork server: started before a job is planned, and ended with all its ranks."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from srlhpc.plan.rank_variables import numbers_of_threads, outside_any_world, settings_of_ranks
from srlhpc.ranks import fork_stub
from srlhpc.ranks.gpu_binding import device_files, visible_gpus
from srlhpc.runs.processes import FORK_SERVER_VARIABLE
from srlhpc.specs.child_processes import die_with_parent, kill_marked

log = logging.getLogger(__name__)


class ForkServer:
    """A process of this machine that forks ranks.

    Args:
        token: names it, and is the secret that stubs must know; every process that it forks has it in its environment.
        process: it.
        said: what it said.
    """

    def __init__(self, token: str, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self.token, self.process, self._said = token, process, said

    @property
    def environment(self) -> dict[str, str]:
        """What stubs need in theirs."""
        return {FORK_SERVER_VARIABLE: self.token}

    def program(self, program: Sequence[str]) -> list[str]:
        """The command whose process stands for a rank.

        Args:
            program: the command of the rank without it, a module of Python.
        """
        assert program[:2] == [sys.executable, "-m"]
        return [sys.executable, "-I", "-S", str(Path(fork_stub.__file__)), _address(self.token), *program[2:]]

    def close(self) -> list[int]:
        """Kills it, its ranks and what they have started; returns what could not be killed in time."""
        if self.process.returncode is None and self.process.poll() is not None:
            self._said.seek(0)
            last = self._said.read().decode(errors="replace").strip().splitlines()[-1:]
            log.warning("; ".join([f"the fork server ended with {self.process.returncode}", *last]))
        self.process.kill()
        self.process.wait()
        return kill_marked(FORK_SERVER_VARIABLE, self.token)


@contextmanager
def fork_server(*, wanted: bool = True) -> Iterator[ForkServer | None]:
    """A fork server that loads its modules while the caller goes on; call it from the main thread.

    None if it is not wanted, on other systems than Linux, and where ranks may see GPUs: which of them a process sees
    must be set before torch is loaded.
    """
    if not wanted or sys.platform != "linux" or visible_gpus(os.environ, device_files()):
        yield None
        return
    token = secrets.token_hex(16)
    with tempfile.TemporaryFile() as said:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("\0" + _address(token))
            listening.listen(socket.SOMAXCONN)
            process = subprocess.Popen(
                [sys.executable, "-m", "srlhpc.ranks.fork_server", str(listening.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=_environment(token),
                pass_fds=[listening.fileno()],
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        server = ForkServer(token, process, said)
        try:
            yield server
        finally:
            server.close()


def _address(token: str) -> str:
    """In the abstract namespace of Unix sockets, which leaves no file behind; everybody can see it."""
    return f"srlhpc-{hashlib.sha256(token.encode()).hexdigest()[:32]}"


def _environment(token: str) -> dict[str, str]:
    """What libraries read when they are loaded is what the ranks will have."""
    outer = os.environ
    return {
        **outside_any_world(outer),
        **settings_of_ranks(outer),
        **numbers_of_threads(outer, 1),
        FORK_SERVER_VARIABLE: token,
    }
