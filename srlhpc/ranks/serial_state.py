"""The state of a serial run beside the trainers' parts: every role, what is under way between them, the generators.

What cannot be saved begins anew at each checkpoint, in the run that writes it as in one that goes on from it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srlhpc.comm.inproc import InProcessTransport
from srlhpc.plan.layouts import block_layout, request_layout
from srlhpc.plan.plan import Plan
from srlhpc.ranks.global_generators import load_generators, save_generators
from srlhpc.roles.acting.actor import Actor
from srlhpc.roles.acting.evaluator import Evaluator
from srlhpc.roles.coordinating.coordinator import Coordinator
from srlhpc.roles.role import Role
from srlhpc.roles.serving.policy_server import PolicyServer
from srlhpc.roles.training.trainer import Trainer

ARRANGEMENT = "arrangement"
"""Says which plans the state fits."""
LINKS = "links"
"""Name of the links' state beside the roles in a checkpoint; older checkpoints have none."""
GENERATORS = "generators"
"""Name of the process's own generators beside the roles in a checkpoint."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SerialState:
    """Saves and loads what a serial run consists of."""

    plan: Plan
    transport: InProcessTransport
    actors: Sequence[Actor]
    servers: Sequence[PolicyServer]
    trainers: Sequence[Trainer]
    evaluators: Sequence[Evaluator]
    others: Sequence[Role]
    can_save: bool
    """Whether the environments can be saved; else they begin new episodes at each checkpoint."""

    @property
    def roles(self) -> list[Role]:
        """All roles, in the order of their turns."""
        return [*self.actors, *self.servers, *self.trainers, *self.evaluators, *self.others]

    def save(self, coordinator: Coordinator) -> dict[str, Any]:
        """Everything, as it is while the world stands still (see `lock_step`)."""
        for evaluator in self.evaluators:
            evaluator.start_over()
        state: dict[str, Any] = {role.label: role.save_state() for role in (*self.roles, coordinator)}
        state |= {LINKS: self.transport.save_state(), GENERATORS: save_generators()}
        # What cannot be saved starts anew here too, so that a resumed run does the same as this one.
        if not self.can_save:
            for actor in self.actors:
                actor.start(self.trainers[0].version)
        return state | {ARRANGEMENT: arrangement(self.plan)}

    def begin(self, restored: Mapping[str, Any] | None, coordinator: Coordinator) -> None:
        """Goes on from the checkpoint's tree as far as it fits; else with new episodes."""
        states: Mapping[str, Any] = (restored or {}).get("roles", {})
        if restored is not None and not self._fits(states):
            log.warning("the checkpoint's environments, groups or batches do not fit this run: it starts new episodes")
            states = {}
        # Links first: a role that held a message when it was saved takes it from its inbox again.
        self.transport.load_state(states.get(LINKS, {}))
        for role in (*self.roles, coordinator):
            if role.label in states:
                role.load_state(states[role.label])
        if GENERATORS in states:
            load_generators(states[GENERATORS])
        updates = int(restored["meta"]["updates"]) if restored is not None else 0
        for actor in self.actors:
            if not (self.can_save and actor.label in states):
                actor.start(updates)

    def _fits(self, states: Mapping[str, Any]) -> bool:
        if LINKS in states:
            return bool(states[ARRANGEMENT] == arrangement(self.plan))
        if states.get(ARRANGEMENT) != environments_digest(self.plan):
            return False
        log.warning(
            "the checkpoint was written by an older srlhpc, without what was under way: its episodes go on, but the "
            "numbers that follow are not those of a run that was never stopped"
        )
        return True


def arrangement(plan: Plan) -> str:
    """Equal where the states of all roles and links fit: environments, roles, groups, layouts and batches."""
    specs = {name: plan.spec.policies[name] for name in plan.trained_policies}
    batches = {name: spec.batch.model_dump(mode="json") for name, spec in specs.items()}
    replays = {name: spec.replay.model_dump(mode="json") for name, spec in specs.items() if spec.replay is not None}
    # Nothing stands for no replay, so that checkpoints from before there was any still fit.
    return _digest([environments_digest(plan), batches, *([replays] if replays else [])])


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
