"""How an attempt ends: state, reason, what is written down and what is printed."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from typing import Any, Literal

from srlhpc.data.atomic import read_json
from srlhpc.data.forgiving import FileSystemLostError, read_surely
from srlhpc.plan.lag_text import lag_hints
from srlhpc.runs.checkpoints import last_checkpoint
from srlhpc.runs.failures import Failure, failures
from srlhpc.runs.paths import AttemptPaths, RunPaths
from srlhpc.runs.progress import progress_text

log = logging.getLogger(__name__)

State = Literal["finished", "interrupted", "failed"]
EXIT_CODES: dict[State, int] = {"finished": 0, "failed": 1, "interrupted": 130}


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended."""

    state: State
    reason: str
    message: str

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.state]

    @classmethod
    def written(cls, attempt: AttemptPaths) -> Outcome | None:
        """What the coordinator wrote when the step ended cleanly; None if it did not."""
        try:
            # One failed look must not make a failure of a run that has finished.
            content = read_surely(attempt.outcome)
        except FileSystemLostError as error:
            log.warning("%s", error)
            return None
        if content is None or content.get("state") not in EXIT_CODES:
            return None
        return cls(content["state"], str(content.get("reason", "")), str(content.get("message", "")))


def cause(attempt: AttemptPaths, otherwise: str) -> Outcome:
    """The outcome of an attempt that ended without one: its first failure."""
    if is_removed(attempt):
        return removed(RunPaths(attempt.folder.parent.parent))
    found: list[Failure] = failures(attempt)
    if not found:
        return Outcome("failed", "killed", f"all ranks were gone without a word; {otherwise}")
    first = found[0]
    return Outcome("failed", "exception" if first.traceback else "killed", first.line)


def write_end(attempt: AttemptPaths, outcome: Outcome, started: float) -> None:
    """Writes the foreman's word on the end."""
    now = time.time()
    content: dict[str, Any] = {
        "state": outcome.state,
        "reason": outcome.reason,
        "message": outcome.message,
        "time": now,
        "seconds": now - started,
    }
    _write(attempt, content)


def is_removed(attempt: AttemptPaths) -> bool:
    """Whether the attempt's folder is surely gone, and not just out of sight."""
    try:
        os.stat(attempt.folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def removed(paths: RunPaths) -> Outcome:
    """The end of a run whose folder somebody has taken away: nothing is made anew in its place."""
    return Outcome(
        "failed", "removed", f"{paths.folder} was removed or renamed while the run trained; nothing of it is made anew"
    )


def unwritten(paths: RunPaths, attempt: AttemptPaths) -> Outcome | None:
    """The failed end of an attempt whose last checkpoint waits for room just now; None if none does."""
    status = read_json(paths.status) or {}
    if status.get("attempt") != attempt.number or not status.get("waits"):
        return None
    return Outcome("failed", "checkpoint", f"ended at once, while {status['waits']}; {last_checkpoint(paths)}")


def amend_end(attempt: AttemptPaths, outcome: Outcome) -> None:
    """Puts another outcome into an end that is written: the run was to go on, and does not."""
    changed = {"state": outcome.state, "reason": outcome.reason, "message": outcome.message}
    _write(attempt, (read_json(attempt.end) or {"time": time.time()}) | changed)


def _write(attempt: AttemptPaths, content: dict[str, Any]) -> None:
    try:
        RunPaths(attempt.folder.parent.parent).reserve.write_json(attempt.end, content, sync=True)
    except OSError as error:
        # A full disk must not keep a job from going back into the queue.
        log.warning("%s could not be written: %s", attempt.end, error)


def summary(paths: RunPaths, outcome: Outcome, standing: str = "") -> str:
    """What happened, where the run is, and how to go on; without the line of progress that stands above it already."""
    status = read_json(paths.status) or {}
    reason = f" ({outcome.reason})" if outcome.reason else ""
    message = f": {outcome.message}" if outcome.message else ""
    lines = [f"{outcome.state}{reason}{message}"]
    if status:
        lines += [progress] if (progress := progress_text(status)) != standing else []
        lines += [f"limit: {status['bottleneck']}"] if status.get("bottleneck") else []
        lines += lag_hints(status)
        lines += [f"warning: {text}" for text in status.get("warnings", ()) if text not in message]
    lines.append(f"run {paths.name} in {paths.folder}; {last_checkpoint(paths)}")
    if outcome.state == "failed":
        lines.append(f"more: srlhpc why {paths.typed}; resume: srlhpc resume {paths.typed}")
    if outcome.state == "interrupted":
        lines.append(f"resume: srlhpc resume {paths.typed}")
    return "\n".join(lines)
