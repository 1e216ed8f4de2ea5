"""Letters to the coordinator: an empty file in its mailbox wants something. Posting works on a full disk, too.

A blank letter is made with the mailbox and renamed to be posted, which needs no room; taking it makes it blank again.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def blank(letter: Path) -> Path:
    return letter.with_name(f".{letter.name}")


def post(letter: Path) -> None:
    """Posts a letter; one that lies there already is enough.

    Raises:
        OSError: it cannot be.
    """
    try:
        os.rename(blank(letter), letter)
    except OSError:
        # No blank letter: one is posted already, or the mailbox was made without.
        letter.touch()


def take(letter: Path) -> None:
    """Takes a letter out of the mailbox, if it is there."""
    try:
        os.rename(letter, blank(letter))
    except OSError:
        with contextlib.suppress(OSError):
            letter.unlink(missing_ok=True)
