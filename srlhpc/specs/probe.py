"""Finding an environment's spaces without loading its simulator into this process."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

from srlhpc.environment import MOST_FRAMES, ArraySpec, Spaces, Stack
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from srlhpc.specs.environment_process import EnvironmentProcess, started
from srlhpc.specs.named_modules import EnvironmentSettings

TIMEOUT_SECONDS = 600.0
CLOSE_SECONDS = 10.0
"""Time for the environment to close once its spaces are known. Training waits for it, so it is short."""
_EXIT_SECONDS = 2.0
"""Time for the process to end by itself once it has answered."""
_TOLD_SECONDS = 5.0
"""After so long a message says what the command waits for."""

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
    with started("srlhpc.specs.probe_process", settings) as asked:
        _wait(asked, 1, timeout_seconds, name)
        answer = (asked.answers() or [{}])[0]
        if "error" in answer:
            raise UserError(f"environment '{name}' cannot be built: {answer['error']}")
        if "spaces" not in answer:
            hangs = f"was not built within {timeout_seconds:g} s"
            ending = asked.ending(hangs, "cannot be built: it ended its process")
            raise UserError(f"environment '{name}' {ending}")
        _wait(asked, 2, CLOSE_SECONDS, name)
        if len(asked.answers()) > 1:
            _wait(asked, 3, _EXIT_SECONDS, name)
        _warn_of_closing(name, asked)
        spaces: dict[str, Any] = answer["spaces"]
        return spaces


def _wait(asked: EnvironmentProcess, lines: int, seconds: float, name: str) -> None:
    """Waits until the process has answered so many lines or has ended, at most so long."""
    begun = time.monotonic()
    is_told = False
    while asked.is_running and len(asked.answers()) < lines and (waited := time.monotonic() - begun) < seconds:
        if waited > _TOLD_SECONDS and lines == 1 and not is_told:
            is_told = True
            log.info("environment '%s' is being built to learn its spaces (at most %g s)", name, seconds)
        time.sleep(0.01)


def _warn_of_closing(name: str, asked: EnvironmentProcess) -> None:
    closing = asked.answers()[1:]
    if closing and closing[0]["closing"]:
        log.warning("environment '%s': its close() failed: %s", name, closing[0]["closing"])
    elif not closing and asked.is_running:
        log.warning("environment '%s': its close() did not end within %g s; it was killed", name, CLOSE_SECONDS)
    elif not closing:
        log.warning("environment '%s': its process ended in close() (%s)", name, asked.code_text)
