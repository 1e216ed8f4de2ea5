"""Finding an environment's spaces without loading its simulator into this process."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from srlhpc.environment import MOST_FRAMES, ArraySpec, Spaces, Stack
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from srlhpc.specs.child_processes import die_with_parent, kill_marked
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.probe_process import place_in_stack

TIMEOUT_SECONDS = 600.0
CLOSE_SECONDS = 10.0
"""Time for the environment to close once its spaces are known. Training waits for it, so it is short."""
_EXIT_SECONDS = 2.0
"""Time for the process to end by itself once it has answered."""
_TOLD_SECONDS = 5.0
"""After so long a message says what the command waits for."""
_MARK = "SRLHPC_PROBE"
"""Environment variable of all processes that the environment starts, in whatever session they are."""
_LAST_BYTES, _LAST_LINES = 16_384, 3

log = logging.getLogger(__name__)


def probe_spaces(settings: EnvironmentSettings, timeout_seconds: float = TIMEOUT_SECONDS) -> Spaces:
    """The environment's spaces: from its settings where static, else from one built in a subprocess.

    Raises:
        UserError: a package is missing, the environment does not build, or its spaces are empty.
    """
    check_packages(settings)
    spaces = settings.spaces()
    if spaces is None:
        spaces = Spaces.from_json(_ask_subprocess(settings, timeout_seconds))
    if not spaces.kinds or not all(kind.agents for kind in spaces.kinds):
        raise UserError(f"environment '{settings.factory}' has no agents, so there is nothing to train")
    for kind in spaces.kinds:
        if not any(math.prod(array.shape) for array in kind.observations.values()):
            raise UserError(
                f"environment '{settings.factory}': kind '{kind.name}' has no observations, so its agents cannot learn"
            )
        where = f"environment '{settings.factory}': kind '{kind.name}'"
        if kind.turn_steps < 1:
            raise UserError(f"{where} declares turn_steps {kind.turn_steps}; 1: all act at every step, else more")
        if kind.takes_turns and kind.stacks:
            raise UserError(
                f"{where} takes turns and declares stacks of frames ({', '.join(kind.stacks)}), which go on at every "
                "step; leave `Kind.stacks` out: its observations then travel whole"
            )
        for key, stack in kind.stacks.items():
            _check_stack(where, kind.observations.get(key), key, stack)
    return spaces


def _check_stack(where: str, array: ArraySpec | None, key: str, stack: Stack) -> None:
    """Raises UserError: an observation is no stack of so many frames."""
    if array is None:
        raise UserError(f"{where} declares a stack '{key}', but has no such observation; correct `Kind.stacks`")
    if not 2 <= stack.frames <= MOST_FRAMES or array.shape[:1] != (stack.frames,):
        raise UserError(
            f"{where} declares observation '{key}' as a stack of {stack.frames} frames, but it has shape "
            f"{array.shape}; the first axis counts the frames, of which there may be 2 to {MOST_FRAMES}"
        )


def check_packages(settings: EnvironmentSettings) -> None:
    """Raises UserError with the command that installs what the environment needs, if anything is missing."""
    missing = missing_packages(settings.requires)
    if missing:
        packages = ", ".join(f"'{package}'" for package, _ in missing)
        extras = ",".join(sorted({extra for _, extra in missing}))
        raise UserError(
            f"environment '{settings.factory}' needs {packages}, which is not installed here: "
            f"pip install 'srlhpc[{extras}]'"
        )


def _ask_subprocess(settings: EnvironmentSettings, timeout_seconds: float) -> dict[str, Any]:
    name = settings.factory
    with _started(settings) as asked:
        asked.wait(1, timeout_seconds)
        answer = (asked.answers() or [{}])[0]
        if "error" in answer:
            raise UserError(f"environment '{name}' cannot be built: {answer['error']}")
        if "spaces" not in answer:
            raise UserError(f"environment '{name}' {asked.how_it_ended(timeout_seconds)}")
        asked.wait(2, CLOSE_SECONDS)
        if len(asked.answers()) > 1:
            asked.wait(3, _EXIT_SECONDS)
        _warn_of_closing(name, asked)
        spaces: dict[str, Any] = answer["spaces"]
        return spaces


def _warn_of_closing(name: str, asked: _Probe) -> None:
    closing = asked.answers()[1:]
    if closing and closing[0]["closing"]:
        log.warning("environment '%s': its close() failed: %s", name, closing[0]["closing"])
    elif not closing and asked.is_running:
        log.warning("environment '%s': its close() did not end within %g s; it was killed", name, CLOSE_SECONDS)
    elif not closing:
        log.warning("environment '%s': its process ended in close() (%s)", name, asked.code_text)


@contextmanager
def _started(settings: EnvironmentSettings) -> Iterator[_Probe]:
    """The process that builds the environment; killed at the end, with all that the environment has started."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path), _MARK: mark}
    # Files, not pipes: nobody who holds one open holds the reader, and nobody has to read for others to go on.
    with _temporary() as asked, _temporary() as answers, _temporary() as said:
        asked.write(settings.model_dump_json().encode())
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "srlhpc.specs.probe_process", settings.factory, str(answers.fileno())],
            stdin=asked,
            stdout=said,
            stderr=said,
            env=environment,
            pass_fds=[answers.fileno()],
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        try:
            yield _Probe(process, answers, said, settings.factory)
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


class _Probe:
    def __init__(self, process: subprocess.Popen[bytes], answers: IO[bytes], said: IO[bytes], name: str) -> None:
        self._process, self._answers_file, self._said_file = process, answers, said
        self._name = name

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
        whole, _, _ = _all_of(self._answers_file).rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def wait(self, lines: int, seconds: float) -> None:
        """Waits until the process has answered so many lines or has ended, at most so long."""
        begun = time.monotonic()
        is_told = False
        while self.is_running and len(self.answers()) < lines and (waited := time.monotonic() - begun) < seconds:
            if waited > _TOLD_SECONDS and lines == 1 and not is_told:
                is_told = True
                log.info("environment '%s' is being built to learn its spaces (at most %g s)", self._name, seconds)
            time.sleep(0.01)

    def how_it_ended(self, timeout_seconds: float) -> str:
        """What there is to say of a process that did not answer: it is still at it, or dead."""
        if self.is_running:
            # At this signal faulthandler writes where the process hangs.
            self._process.send_signal(signal.SIGABRT)
            _until(lambda: not self.is_running, _EXIT_SECONDS)
            what = f"was not built within {timeout_seconds:g} s"
        else:
            what = f"cannot be built: it ended its process ({self.code_text})"
        said = _all_of(self._said_file)[-_LAST_BYTES:].decode(errors="replace")
        said, _, stack = said.partition("Fatal Python error")
        where = place_in_stack(stack)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        last = f"; the last that it wrote: {' / '.join(lines[-_LAST_LINES:])}" if lines else ""
        return f"{what}{f', in {where}' if where else ''}{last}"


def _all_of(file: IO[bytes]) -> bytes:
    """What a file holds from its start, whatever place others write at."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _until(holds: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not holds() and time.monotonic() < limit:
        time.sleep(0.01)
