"""Whether the state of a serial run in a checkpoint fits a plan. Free of torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from srlhpc.data.segment_folder import REPLAY
from srlhpc.plan.layouts import block_layout, request_layout, window_shape
from srlhpc.plan.plan import Plan
from srlhpc.plan.replay_sizes import draw_of, samples_per_insert
from srlhpc.specs.replay import ReplaySpec

ARRANGEMENT = "arrangement"
"""Says which plans the state fits."""
LINKS = "links"
"""Name of the links' state beside the roles in a checkpoint; older checkpoints have none."""


def goes_on_exactly(plan: Plan, restored: Mapping[str, Any]) -> bool:
    """Whether the checkpoint's tree has the states of all roles and links of this plan, stores of replay included."""
    states: Mapping[str, Any] = restored.get("roles", {})
    has_replay = {role.label for role in plan.named("replay")} <= restored.get(REPLAY, {}).keys()
    return LINKS in states and has_replay and bool(states[ARRANGEMENT] == arrangement(plan))


def arrangement(plan: Plan) -> str:
    """Equal where the states of all roles and links fit: environments, roles, groups, layouts and batches."""
    specs = {name: plan.spec.policies[name] for name in plan.trained_policies}
    batches = {name: spec.batch.model_dump(mode="json") for name, spec in specs.items()}
    replays = {name: _replay(plan, name, spec.replay) for name, spec in specs.items() if spec.replay is not None}
    files = {name: spec.episodes.model_dump(mode="json") for name, spec in specs.items() if spec.episodes is not None}
    # Nothing stands for no replay and no files, so that checkpoints from before there was any still fit.
    further = (part for part in (replays, files, _matches(plan), _frames(plan)) if part)
    return _digest([environments_digest(plan), batches, *further])


def _frames(plan: Plan) -> dict[str, list[str]]:
    """Policies whose batches hold frames of stacks; in checkpoints from before they did they hold whole stacks."""
    streams = [name for name in plan.fed_policies if not plan.replays(name)]
    frames = [name for name in streams if any(field.stack for field in block_layout(plan, name).fields)]
    return {"frames": frames} if frames else {}


def _matches(plan: Plan) -> dict[str, Any]:
    """Who plays what, and in lots of what size; empty without matches."""
    matches = plan.spec.matches
    if matches is None:
        return {}
    sides = [(seat.name, plan.agents_of(seat), list(seat.trained)) for seat in plan.seats]
    return matches.model_dump(mode="json", include={"rule", "shares", "lot"}) | {"sides": sides}


def _replay(plan: Plan, policy: str, spec: ReplaySpec) -> dict[str, Any]:
    shown: dict[str, Any] = spec.model_dump(mode="json", exclude={"checkpoint"})
    # Where the job leaves it to the rule, its settings say what is drawn: sums of another n need other windows.
    return shown | {
        "window": asdict(window_shape(plan, policy)),
        "draw": draw_of(plan, policy).model_dump(mode="json"),
        "samples_per_insert": samples_per_insert(plan, policy),
    }


def environments_digest(plan: Plan) -> str:
    """Equal where the states of environments and recorders fit that have nothing open."""
    layouts = [
        layout.digest
        for seat in plan.seats
        for layout in (block_layout(plan, seat.policy), request_layout(plan, seat.policy))
    ]
    environment = plan.spec.environment.model_dump(mode="json")
    return _digest([environment, [role.label for role in plan.roles], len(plan.groups), layouts])


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
