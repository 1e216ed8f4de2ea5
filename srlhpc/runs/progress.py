"""Live progress of a run on a terminal or in a file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TextIO

from srlhpc.errors import counted
from srlhpc.plan.lag_text import lag_part
from srlhpc.plan.roles import ROLES
from srlhpc.runs.replay_state import filling_text


class ProgressLine:
    """One line that is redrawn on a terminal; elsewhere a plain line every few seconds.

    Args:
        stream: where it goes.
        every_seconds: between two plain lines.
    """

    def __init__(self, stream: TextIO, every_seconds: float = 5.0) -> None:
        self._stream = stream
        self._redraws = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._every_seconds = 0.25 if self._redraws else every_seconds
        self._next = 0.0
        self._shown = ""

    def is_due(self, now: float) -> bool:
        """Whether `show` would show something."""
        return now >= self._next

    def clear(self) -> None:
        """Takes the line away that is redrawn, so that other output can follow."""
        if self._redraws and self._shown:
            self._write("\r\x1b[2K")
            self._shown = ""

    def show(self, text: str, now: float) -> None:
        """Shows where the run stands, unless it was shown just now."""
        if now < self._next or (text == self._shown and not self._redraws):
            return
        self._next = now + self._every_seconds
        self._shown = text
        if self._redraws:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[2K{text[:width]}")
        else:
            self._write(f"{text}\n")

    @property
    def standing(self) -> str:
        """The last line of progress, where it stays and nothing was said after it; else empty."""
        return "" if self._redraws else self._shown

    def say(self, message: str) -> None:
        """Writes a line that stays."""
        self._write(f"\r\x1b[2K{message}\n" if self._redraws and self._shown else f"{message}\n")
        self._shown = ""

    def _write(self, text: str) -> None:
        """A terminal that was closed must not end the run before its last checkpoint."""
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()


def progress_text(status: Mapping[str, Any]) -> str:
    """`4,096 steps · return 21.3 · 1,034 steps/s · update 32 · lag 0.4 · ranks 4/4 · 12 s`."""
    if status.get("waits"):
        return str(status["waits"])
    parts = [text] if (text := filling_text(status)) else []
    parts += [counted(status.get("steps") or 0, "step")]
    parts += [f"return {_number(status['return_mean'])}"] if status.get("return_mean") is not None else []
    parts += [f"{_count(status.get('steps_per_second'))} steps/s", f"update {_count(status.get('updates'))}"]
    parts += [lag] if (lag := lag_part(status)) else []
    if status.get("ranks_planned"):
        parts.append(f"ranks {status.get('ranks_alive', '?')}/{status['ranks_planned']}")
    if status.get("last_checkpoint"):
        parts.append(f"checkpoint {_count(status.get('last_checkpoint_updates'))}")
    parts.append(duration_text(status.get("seconds") or 0.0))
    return " · ".join(parts)


def duration_text(seconds: float) -> str:
    """`42 s`, `3:07 min`, `2:05 h`."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60}:{minutes % 60:02d} h"
    return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"


def _count(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else "0"


def _number(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else "-"


_WORDS = {
    "environment": "in the environment",
    "computing": "computing",
    "moving": "moving data",
    "input": "waiting for input",
    "slot": "waiting for a free slot",
    "others": "waiting for others",
}
_WORDS_OF = {"replay": _WORDS | {"slot": "letting actors wait", "others": "letting the trainer wait"}}
"""Words of roles that spend a part of their time in their own way."""
_WORTH = 0.005


def timing_lines(state: Mapping[str, Any]) -> list[str]:
    """One line a role, largest share first, and what holds up the run; nothing before the first batch."""
    timing: Mapping[str, Mapping[str, float]] = state.get("timing") or {}
    lines = [
        f"  {role.replace('_', ' ')}: {', '.join(_share(role, activity, share) for activity, share in _sorted(shares))}"
        for role, shares in timing.items()
    ]
    return lines + ([f"  limit: {state['bottleneck']}"] if state.get("bottleneck") else [])


def _sorted(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(
        ((activity, share) for activity, share in shares.items() if share >= _WORTH), key=lambda pair: -pair[1]
    )


def _share(role: str, activity: str, share: float) -> str:
    if role in ROLES and activity == "input":
        words = f"waiting for {ROLES[role].waits_for}"
    else:
        words = _WORDS_OF.get(role, _WORDS).get(activity, activity)
    return f"{100 * share:.0f} % {words}"
