"""What a status says of the policy lag: how old data was, and which setting changes it. Free of pydantic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from srlhpc.errors import counted

_HIGH = 2.0
"""Updates; data as old as this on average costs steps (benchmarks/policy_lag_*.md)."""


def lag_lines(state: Mapping[str, Any]) -> list[str]:
    """How old each policy's data was when it was trained last, with its limit, and what helps where it is old."""
    return [_lag_line(policy, lag) for policy, lag in (state.get("policy_lag") or {}).items()]


def lag_hints(state: Mapping[str, Any]) -> Iterator[str]:
    """What makes data newer, for the policies whose data is old."""
    for policy, lag in (state.get("policy_lag") or {}).items():
        if lag["mean"] >= _HIGH and lag["advice"]:
            yield (
                f"data of {policy} is {lag['mean']:.2g} updates old when it is trained, which costs steps: "
                f"{lag['advice']}"
            )


def _lag_line(policy: str, lag: Mapping[str, Any]) -> str:
    limit = "no limit" if lag["limit"] is None else f"at most {lag['limit']}"
    if lag["min"] == lag["max"]:
        return f"{policy}: {counted(lag['max'], 'update')} ({limit})"
    return f"{policy}: {lag['min']} to {counted(lag['max'], 'update')}, mean {lag['mean']:.2g} ({limit})"
