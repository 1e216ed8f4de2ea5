"""Times as Slurm takes them, and as people write them."""

from __future__ import annotations

import re

MOST_MINUTES = 366 * 24 * 60
"""Longest time limit, a year."""
_UNITS = {"m": 1, "min": 1, "h": 60, "d": 24 * 60}


def minutes_in(text: str) -> float | None:
    """Minutes in a text: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S as for Slurm, or a number with m, h or d; else None."""
    if match := re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(m|min|h|d)", text, re.ASCII):
        return float(match[1]) * _UNITS[match[2]]
    if match := re.fullmatch(r"([0-9]{1,6})-([0-9]{1,6})(?::([0-9]{1,6}))?(?::([0-9]{1,6}))?", text, re.ASCII):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return days * 24 * 60 + hours * 60 + minutes + seconds / 60
    if match := re.fullmatch(r"(?:([0-9]{1,6}):)?([0-9]{1,9}):([0-9]{1,6})", text, re.ASCII):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return hours * 60 + minutes + seconds / 60
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) else None
