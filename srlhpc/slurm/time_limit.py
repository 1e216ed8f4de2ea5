"""Time limits as Slurm takes them, and as people write them."""

from __future__ import annotations

import math

from srlhpc.errors import UserError
from srlhpc.specs.time_text import MOST_MINUTES, minutes_in


def minutes_of(text: str) -> int:
    """A time limit in whole minutes, rounded up.

    Args:
        text: minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S as for Slurm, or a number with m, h or d.

    Raises:
        UserError: it is none of these, or not between a minute and a year.
    """
    minutes = minutes_in(text.strip())
    if minutes is None:
        raise UserError(f"--time: '{text}' is no time limit; write minutes, 12:00:00, 2-00:00:00, 90m, 12h or 2d")
    if not 0 < minutes <= MOST_MINUTES:
        raise UserError(f"--time: '{text}' must be at least a minute and at most a year")
    return math.ceil(minutes)


def hours_text(minutes: int) -> str:
    """Minutes as Slurm shows them: `1-02:30:00`."""
    days, rest = divmod(minutes, 24 * 60)
    return f"{days}-" * bool(days) + f"{rest // 60:02}:{rest % 60:02}:00"


def slurm_minutes(text: str) -> int | None:
    """A time limit as Slurm's commands print it; None for no limit, or for one that is not set."""
    minutes = minutes_in(text)
    return None if minutes is None else math.ceil(minutes)
