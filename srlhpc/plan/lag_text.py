"""What a status says of the policy lag: how old data was, and which setting changes it. Free of pydantic.

With replay, the lag is the age of what was drawn, which is meant to be old.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from srlhpc.errors import counted, rounded

_HIGH = 2.0
"""Updates; data as old as this on average costs steps (benchmarks/policy_lag_*.md)."""


def lag_lines(state: Mapping[str, Any]) -> list[str]:
    """How old each policy's data was when it was trained last: `policy lag of default: 1 update (at most 1)`."""
    return [_lag_line(policy, lag) for policy, lag in (state.get("policy_lag") or {}).items()]


def lag_part(status: Mapping[str, Any]) -> str | None:
    """`lag 0.4`, or with replay `drawn data 2,898 updates old`, of the first policy; None before the first update."""
    mean = status.get("policy_lag_mean")
    if mean is None:
        return None
    first: Mapping[str, Any] = next(iter((status.get("policy_lag") or {}).values()), {})
    return f"drawn data {rounded(mean)} updates old" if first.get("is_drawn") else f"lag {rounded(mean)}"


def lag_hints(state: Mapping[str, Any]) -> Iterator[str]:
    """What makes data newer, for the policies whose data is old."""
    for policy, lag in (state.get("policy_lag") or {}).items():
        if lag["mean"] >= _HIGH and lag["advice"]:
            yield (
                f"data of {policy} is {rounded(lag['mean'])} updates old when it is trained, which costs steps: "
                f"{lag['advice']}"
            )


def _lag_line(policy: str, lag: Mapping[str, Any]) -> str:
    limit = "no limit" if lag["limit"] is None else f"at most {lag['limit']}"
    what, remark = f"policy lag of {policy}", f" ({limit})"
    if lag.get("is_drawn"):
        what, remark = f"age of what {policy} drew from replay", ""
    if lag["min"] == lag["max"]:
        return f"{what}: {counted(lag['max'], 'update')}{remark}"
    return f"{what}: {lag['min']:,} to {counted(lag['max'], 'update')}, mean {rounded(lag['mean'])}{remark}"
