"""A process in which an environment may do whatever it does, and what it answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import IO, Any

from srlhpc.errors import UserError
from srlhpc.specs.child_processes import die_with_parent, kill_marked
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.probe_process import place_in_stack

_EXIT_SECONDS = 2.0
"""Time for the process to end where it is told to write down its place."""
_MARK = "SRLHPC_PROBE"
"""Environment variable of all processes that the environment starts, in whatever session they are."""
_LAST_BYTES, _LAST_LINES = 16_384, 3


class EnvironmentProcess:
    """What a process has answered so far, in lines of JSON, and how it does."""

    def __init__(self, process: subprocess.Popen[bytes], answers: IO[bytes], said: IO[bytes]) -> None:
        self._process, self._answers, self._said = process, answers, said

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def code_text(self) -> str:
        """The exit code or signal of the process, in words."""
        code = self._process.wait()
        if code >= 0:
            return f"exit code {code}"
        return f"signal {-code} ({signal.Signals(-code).name})" if -code in set(signal.Signals) else f"signal {-code}"

    def answers(self) -> list[dict[str, Any]]:
        """The whole lines of its answer."""
        whole, _, _ = _all_of(self._answers).rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def ending(self, hangs: str, ends: str) -> str:
        """What there is to say of a process that has not told all: it is still at it, and is ended now, or dead.

        Args:
            hangs: begins the words where it is still at it.
            ends: where it has ended.
        """
        if not self.is_running:
            return f"{ends} ({self.code_text}){self._last_words}"
        self._abort()
        return hangs + self._last_words

    def _abort(self) -> None:
        # At this signal faulthandler writes where the process is.
        self._process.send_signal(signal.SIGABRT)
        limit = time.monotonic() + _EXIT_SECONDS
        while self.is_running and time.monotonic() < limit:
            time.sleep(0.01)

    @property
    def _last_words(self) -> str:
        """The line of the user's code that a crash was in, if it is known, and the last that the process wrote.

        `, in carts.py:12; the last that it wrote: no licence`
        """
        said = _all_of(self._said)[-_LAST_BYTES:].decode(errors="replace")
        said, _, stack = said.partition("Fatal Python error")
        where = place_in_stack(stack)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        last = f"; the last that it wrote: {' / '.join(lines[-_LAST_LINES:])}" if lines else ""
        return f"{f', in {where}' if where else ''}{last}"


@contextmanager
def started(
    module: str, settings: EnvironmentSettings, *arguments: str, variables: Mapping[str, str] = MappingProxyType({})
) -> Iterator[EnvironmentProcess]:
    """A process that runs a module; killed at the end, with all that the environment has started.

    Args:
        module: reads the settings as JSON from stdin, and answers in lines of JSON.
        settings: of the environment.
        arguments: of the module, behind the factory and before the file descriptor that it answers to.
        variables: environment variables beside those of this process.

    Raises:
        UserError: no temporary file can be made.
    """
    mark = uuid.uuid4().hex
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    # Files, not pipes: nobody who holds one open holds the reader, and nobody has to read for others to go on.
    with _temporary() as asked, _temporary() as answers, _temporary() as said:
        # Python's JSON has numbers for what is infinite, and pydantic's has none.
        asked.write(json.dumps(settings.model_dump(mode="json")).encode())
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", module, settings.factory, *arguments, str(answers.fileno())],
            stdin=asked,
            stdout=said,
            stderr=said,
            env={**os.environ, **variables, "PYTHONPATH": paths, _MARK: mark},
            pass_fds=[answers.fileno()],
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        try:
            yield EnvironmentProcess(process, answers, said)
        finally:
            process.kill()
            process.wait()
            kill_marked(_MARK, mark)


@contextmanager
def _temporary() -> Iterator[IO[bytes]]:
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile(buffering=0))
        except OSError as error:
            raise UserError(f"no temporary file can be made: {error}; make room, or set TMPDIR") from None
        yield file


def _all_of(file: IO[bytes]) -> bytes:
    """What a file holds from its start, whatever place others write at."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
