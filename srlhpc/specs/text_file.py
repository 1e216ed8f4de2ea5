"""Reading the files that a user names: text of a sane size, and never a wait or a device."""

from __future__ import annotations

import difflib
import os
import stat
from pathlib import Path

from srlhpc.errors import UserError

MOST_BYTES = 1_000_000
"""Size of a job file or a profile."""


def read_text(path: str) -> str:
    """The text of a job file or a profile.

    Raises:
        UserError: there is no such file, it cannot be read, or it is no text.
    """
    try:
        return _content(path).decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file{_near(path) or '; correct its path'}") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a directory; name a file in it") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is no text (byte {error.start} is not UTF-8); it must be YAML") from None
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"{path}: cannot be read ({reason}); name a YAML file that you may read") from None


def _content(path: str) -> bytes:
    """The bytes of a file, or of a pipe that somebody writes to."""
    # Without waiting for somebody to open the other end of a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise UserError(f"{path}: is a device; name a YAML file")
        os.set_blocking(descriptor, True)
        content = b""
        while (chunk := os.read(descriptor, 1 << 16)) and len(content) <= MOST_BYTES:
            content += chunk
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise UserError(f"{path}: has more than {MOST_BYTES:,} bytes, too much for a job or a profile; name another")
    return content


def _near(path: str) -> str:
    """Suggests a file of the same folder, or of `jobs`."""
    wanted = Path(path)
    try:
        files = {file.stem: file for folder in (Path("jobs"), wanted.parent) for file in folder.glob("*.yaml")}
    except OSError:
        return ""
    near = difflib.get_close_matches(wanted.stem, list(files), n=1, cutoff=0.6)
    return f"; did you mean '{files[near[0]]}'?" if near else ""
