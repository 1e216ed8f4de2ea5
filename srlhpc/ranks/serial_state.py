"""The state of a serial run beside the trainers' parts: every role, what is under way between them, the generators.

What cannot be saved begins anew at each checkpoint, in the run that writes it as in one that goes on from it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srlhpc.comm.inproc import InProcessTransport
from srlhpc.data.segment_folder import REPLAY
from srlhpc.plan.plan import Plan
from srlhpc.ranks.arrangement import ARRANGEMENT, LINKS, arrangement, environments_digest, goes_on_exactly
from srlhpc.ranks.global_generators import load_generators, save_generators
from srlhpc.roles.acting.actor import Actor
from srlhpc.roles.acting.evaluator import Evaluator
from srlhpc.roles.coordinating.coordinator import Coordinator
from srlhpc.roles.replaying.replay import Replay
from srlhpc.roles.role import Role
from srlhpc.roles.serving.policy_server import PolicyServer
from srlhpc.roles.training.trainer import Trainer

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

    @property
    def _replays(self) -> list[Replay]:
        return [role for role in self.others if isinstance(role, Replay)]

    def shard_parts(self) -> dict[str, Mapping[str, Any]]:
        """The parts of all shards of replay, whose blocks are written when this returns.

        Raises:
            OSError: they cannot be written.
        """
        return {replay.label: replay.shard_part() for replay in self._replays}

    def begin(self, restored: Mapping[str, Any] | None, coordinator: Coordinator) -> None:
        """Goes on from the checkpoint's tree as far as it fits; else with new episodes."""
        states: Mapping[str, Any] = (restored or {}).get("roles", {})
        if restored is not None and not self._fits(restored):
            log.warning("the checkpoint's environments, groups or batches do not fit this run: it starts new episodes")
            states = {}
        if states and restored is not None:
            self._load(states, restored.get(REPLAY, {}), coordinator)
        if GENERATORS in states:
            load_generators(states[GENERATORS])
        updates = int(restored["meta"]["updates"]) if restored is not None else 0
        for actor in self.actors:
            if not (self.can_save and actor.label in states):
                actor.start(updates)

    def _load(self, states: Mapping[str, Any], shards: Mapping[str, Any], coordinator: Coordinator) -> None:
        # Links first: a role that held a message when it was saved takes it from its inbox again.
        self.transport.load_state(states.get(LINKS, {}))
        for role in (*self.roles, coordinator):
            if role.label in states:
                role.load_state(states[role.label])
        for replay in self._replays:
            if replay.label in shards:
                replay.load_shard(shards[replay.label])

    def _fits(self, restored: Mapping[str, Any]) -> bool:
        states: Mapping[str, Any] = restored.get("roles", {})
        if LINKS in states:
            return goes_on_exactly(self.plan, restored)
        if states.get(ARRANGEMENT) != environments_digest(self.plan):
            return False
        log.warning(
            "the checkpoint was written by an older srlhpc, without what was under way: its episodes go on, but the "
            "numbers that follow are not those of a run that was never stopped"
        )
        return True
