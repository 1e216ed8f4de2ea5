"""What a status says of replay: how full it is, and how often its records were learnt from. Over all policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srlhpc.errors import counted


def filling_text(status: Mapping[str, Any]) -> str | None:
    """`replay fills: 3,000 of 50,000 steps`, until all of it is drawn from; None without replay, and afterwards."""
    replay = _counters(status)
    if not replay.get("filling"):
        return None
    return f"replay fills: {replay['steps_inserted']:,.0f} of {counted(int(replay['start_steps']), 'step')}"


def replay_lines(state: Mapping[str, Any]) -> list[str]:
    """How full it is, what came in and was drawn, and what came back too late."""
    replay = _counters(state)
    if not replay:
        return []
    blocks, slots = int(replay["blocks"]), int(replay["slots"])
    held = f"full, {counted(slots, 'block')}" if blocks == slots else f"{blocks:,} of {counted(slots, 'block')}"
    parts = [
        filling_text(state) or f"replay: {held}",
        f"{counted(int(replay['drawable']), 'window')} can be drawn",
        f"{counted(int(replay['records_inserted']), 'record')} came in",
        f"{replay['records_drawn']:,.0f} were drawn",
    ]
    if late := int(replay["dropped_priorities"]):
        parts.append(f"{late:,} priorities of records that were gone")
    return [f"  {', '.join(parts)}"]


def _counters(status: Mapping[str, Any]) -> Mapping[str, float]:
    found: Mapping[str, float] = (status.get("roles") or {}).get("replay") or {}
    return found
