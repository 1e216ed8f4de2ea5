"""The process that builds an environment to tell its spaces: `python -m srlhpc.specs.probe_process FACTORY FD`.

It reads the settings as JSON from stdin and writes lines of JSON to the file descriptor: first the spaces or what went
wrong, then, once the environment is closed, what went wrong in that.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import srlhpc
from srlhpc.errors import UserError
from srlhpc.import_path import load_module

_LONGEST_MESSAGE = 4000
_STACK_LINE = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in ', re.MULTILINE)
"""A line of faulthandler's stacks, which begin with the innermost call."""


def main() -> None:
    """Builds, answers, closes."""
    # Where native code crashes, and where it hangs when the asking process loses patience.
    faulthandler.enable(all_threads=False)
    factory, descriptor = sys.argv[1], int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    # What simulators print must not mix with the answer, so it goes neither to stdout nor to stderr.
    with open(descriptor, "w") as answers:
        try:
            environment = _build(factory, sys.stdin.read())
            _answer(answers.write, {"spaces": environment.spaces.to_json()})
        except BaseException as error:
            _answer(answers.write, {"error": told(error)})
            return
        finally:
            answers.flush()
        try:
            environment.close()
        except BaseException as error:
            _answer(answers.write, {"closing": told(error)})
        else:
            _answer(answers.write, {"closing": None})


def _build(factory: str, settings_json: str) -> Any:
    module = load_module(factory, "envs")
    return module.build(module.Settings.model_validate(json.loads(settings_json)), num_environments=1, seed=0)


def _answer(write: Callable[[str], object], content: Mapping[str, Any]) -> None:
    write(json.dumps(content) + "\n")


def told(error: BaseException) -> str:
    """What was raised, in all its lines, behind file and line of the user's code that raised it."""
    if isinstance(error, UserError):
        return str(error)
    message = "".join(traceback.format_exception_only(error)).strip()[:_LONGEST_MESSAGE]
    if isinstance(error, SystemExit):
        message = f"sys.exit({error.code!r}) was called"
    where = _place(error)
    return f"{where}: {message}" if where else message


def _place(error: BaseException) -> str:
    """The innermost line of the user's code; without any, the innermost line of all."""
    frames = [(frame.filename, frame.lineno or 0) for one in _chain(error) for frame in _innermost_first(one)]
    return innermost(frames)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those that it was raised from."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _innermost_first(error: BaseException) -> list[traceback.FrameSummary]:
    return list(reversed(traceback.extract_tb(error.__traceback__)))


def innermost(frames: list[tuple[str, int]]) -> str:
    """`file:line` of the first frame that is the user's code, else of the first; empty if there is none.

    Args:
        frames: file and line of calls, the innermost first.
    """
    users = [frame for frame in frames if _is_users(frame[0])]
    chosen = (users or frames)[:1]
    return "".join(f"{_short(file)}:{line}" for file, line in chosen)


def place_in_stack(text: str) -> str:
    """Same as `innermost`, from a stack that faulthandler has printed."""
    return innermost([(found["file"], int(found["line"])) for found in _STACK_LINE.finditer(text)])


def _is_users(file: str) -> bool:
    return not file.startswith("<") and not any(file.startswith(f"{folder}{os.sep}") for folder in _FOREIGN)


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


_PACKAGE = Path(srlhpc.__file__).parent
_FOREIGN = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {str(_PACKAGE), str(_PACKAGE.with_name("envs"))}
)
"""Folders of code that is not the user's."""


if __name__ == "__main__":
    main()
