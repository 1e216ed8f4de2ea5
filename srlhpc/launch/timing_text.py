"""What roles spend their time on, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "environment": "in the environment",
    "computing": "computing",
    "moving": "moving data",
    "input": "waiting for input",
    "slot": "waiting for a free slot",
    "others": "waiting for others",
}
_INPUT = {"trainer": "batches", "policy_server": "requests", "actor": "actions", "evaluator": "parameters"}
_WORTH = 0.005


def timing_lines(state: Mapping[str, Any]) -> list[str]:
    """One line a role, largest share first, and what holds up the run; nothing before the first batch."""
    timing: Mapping[str, Mapping[str, float]] = state.get("timing") or {}
    lines = [
        f"  {role.replace('_', ' ')}: {', '.join(_share(role, part, share) for part, share in _sorted(shares))}"
        for role, shares in timing.items()
    ]
    return lines + ([f"  limit: {state['bottleneck']}"] if state.get("bottleneck") else [])


def _sorted(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(((part, share) for part, share in shares.items() if share >= _WORTH), key=lambda pair: -pair[1])


def _share(role: str, part: str, share: float) -> str:
    words = f"waiting for {_INPUT[role]}" if part == "input" and role in _INPUT else _WORDS.get(part, part)
    return f"{100 * share:.0f} % {words}"
