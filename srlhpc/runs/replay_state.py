"""What a status says of replay: how full it is, and how often its records were learnt from. Over all policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from srlhpc.errors import counted

if TYPE_CHECKING:
    from srlhpc.specs.experiment import ExperimentSpec
    from srlhpc.specs.replay import ReplaySpec


def filling_text(status: Mapping[str, Any]) -> str | None:
    """`replay fills: 3,000 of 50,000 steps`, until all of it is drawn from; None without replay, and afterwards.

    One that the checkpoint did not bring back `starts empty and fills again`.
    """
    replay = _counters(status)
    if not replay.get("filling"):
        return None
    what = "starts empty and fills again" if replay.get("refills") else "fills"
    return f"replay {what}: {replay['steps_inserted']:,.0f} of {counted(int(replay['start_steps']), 'step')}"


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
    if old := int(replay.get("too_old", 0)):
        parts.append(f"{counted(old, 'block')} too old (replay.max_age)")
    if late := int(replay["dropped_priorities"]):
        parts.append(f"{late:,} priorities of records that were gone or too old")
    return [f"  {', '.join(parts)}"]


def resume_lines(spec: ExperimentSpec, *, serial: bool) -> list[str]:
    """What a resume will do with each policy's replay, as far as the spec says it."""
    return [
        f"replay of policy {name}: {_at_resume(policy.replay, name, serial=serial)}"
        for name, policy in spec.policies.items()
        if policy.replay is not None
    ]


def _at_resume(replay: ReplaySpec, policy: str, *, serial: bool) -> str:
    if serial:
        return "goes on as it was"
    if replay.checkpoint:
        return "goes on with what the checkpoint holds of it"
    return (
        f"starts empty, and training goes on when {counted(replay.start_steps, 'step')} came in; "
        f"--set policies.{policy}.replay.checkpoint=true keeps it from then on"
    )


def _counters(status: Mapping[str, Any]) -> Mapping[str, float]:
    found: Mapping[str, float] = (status.get("roles") or {}).get("replay") or {}
    return found
