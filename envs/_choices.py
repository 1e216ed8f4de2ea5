"""How many choices of a Discrete or MultiDiscrete space networks can have an input or output for."""

from __future__ import annotations

from srlhpc.errors import UserError

MOST_CHOICES = 1_000_000
"""Most choices of an action: with a layer of 256 units, a gigabyte of weights."""


def require_few_choices(choices: int, what: str, remedy: str) -> None:
    """Raises UserError if these choices of all parts together are too many."""
    if choices > MOST_CHOICES:
        raise UserError(
            f"{what} has {choices:,} choices, each of which would be an input or output of the network; possible are "
            f"{MOST_CHOICES:,}: {remedy}"
        )
