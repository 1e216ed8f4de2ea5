"""What the doctor reports: one line a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "fault"]
_WIDTHS = {"level": 7, "what": 18}


@dataclass(frozen=True)
class Finding:
    """The answer of one check."""

    level: Level
    what: str
    """What was looked at."""
    found: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """`level  what: found; remedy`, in columns."""
        text = f"{self.found}; {self.remedy}" if self.remedy else self.found
        return f"{self.level:{_WIDTHS['level']}}  {self.what + ':':{_WIDTHS['what']}}  {' '.join(text.split())}"


def ok(what: str, found: str) -> Finding:
    return Finding("ok", what, found)


def warning(what: str, found: str, remedy: str) -> Finding:
    return Finding("warning", what, found, remedy)


def fault(what: str, found: str, remedy: str) -> Finding:
    return Finding("fault", what, found, remedy)


def worst(findings: Sequence[Finding]) -> Level:
    """The worst level among them."""
    levels = {finding.level for finding in findings}
    return next((level for level in ("fault", "warning") if level in levels), "ok")
