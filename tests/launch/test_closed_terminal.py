"""A terminal that is closed while a run goes on."""

from __future__ import annotations

import io

from srlhpc.runs.progress import ProgressLine


class ClosedTerminal(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_progress_into_a_closed_terminal_raises_nothing() -> None:
    line = ProgressLine(ClosedTerminal())
    line.show("1 step", 0.0)
    line.say("finished")
