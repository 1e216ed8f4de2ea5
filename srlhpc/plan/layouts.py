"""How a plan's messages lie in memory. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from srlhpc.data import blocks, matches, windows
from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.layout import Layout
from srlhpc.data.windows import WindowShape
from srlhpc.plan.plan import Plan
from srlhpc.specs.contracts import EXPERT_ACTION

_OF_STORES = (windows.CUT, windows.SLOT, windows.GENERATION, windows.PROBABILITY)
"""Fields of windows that only replay knows."""


def policy_shapes(plan: Plan, policy: str) -> PolicyShapes:
    """What a policy's records hold: arrays of its agents' kind, states of its network, and what its rule needs."""
    kind = plan.kind_of(policy)
    spec = plan.spec.policies[policy]
    needs = spec.algorithm.needs(kind)
    together = len(plan.seat(policy).trained) if needs.joint else None
    labels = {} if needs.expert is None else {EXPERT_ACTION: kind.actions.array}
    return PolicyShapes(kind, spec.network.state_arrays(), {**needs.outputs, **labels}, needs.fields, together)


def environment_columns(plan: Plan, policy: str) -> int:
    """Columns of the policy in one environment: its trained agents, or one where they are learnt from together."""
    return (
        1 if plan.spec.policies[policy].algorithm.needs(plan.kind_of(policy)).joint else len(plan.seat(policy).trained)
    )


@dataclass(frozen=True)
class Fragment:
    """What actors send of each column at once."""

    records: int
    """Burn-in included."""
    burn_in: int
    """Records at its beginning that repeat the end of the one before."""
    chunks: int
    """Parts with a stored recurrent state each."""

    @property
    def steps(self) -> int:
        """Environment steps from its start to its end."""
        return self.records - self.burn_in


def fragment(plan: Plan, policy: str) -> Fragment:
    """A fragment of the policy: what a batch is made of, or with replay a stretch of records to draw windows from."""
    spec = plan.spec.policies[policy]
    batch, replay = spec.batch, spec.replay
    if replay is None:
        return Fragment(batch.burn_in_steps + batch.fragment_steps, batch.burn_in_steps, batch.chunks)
    has_memory = bool(spec.network.state_arrays())
    chunks = replay.block_steps // replay.window_stride(batch.fragment_steps, has_memory) if has_memory else 1
    return Fragment(replay.block_steps, 0, chunks)


def block_layout(plan: Plan, policy: str) -> Layout:
    """A block: the fragments of one group."""
    own = fragment(plan, policy)
    return blocks.block_layout(
        policy_shapes(plan, policy),
        own.records,
        plan.spec.actors.environments,
        len(plan.seat(policy).trained),
        own.chunks,
    )


def window_shape(plan: Plan, policy: str) -> WindowShape:
    """Which records are drawn together; only with replay."""
    spec, kind = plan.spec.policies[policy], plan.kind_of(policy)
    batch, replay = spec.batch, spec.replay
    assert replay is not None
    # The last trained record's sum, and the turn that follows it, may be so many turns away.
    turns = spec.algorithm.needs(kind).after + 1
    return WindowShape(
        batch.fragment_steps,
        batch.burn_in_steps,
        turns * kind.turn_steps - 1,
        replay.window_stride(batch.fragment_steps, bool(spec.network.state_arrays())),
    )


def shard_windows(plan: Plan, policy: str) -> int:
    """Windows of a trainer's batch that come from each of its replay ranks."""
    spec = plan.spec.policies[policy]
    return spec.batch.fragments * len(plan.trainers(policy)) // len(plan.replays(policy))


def windows_layout(plan: Plan, policy: str) -> Layout:
    """What a replay rank sends: its part of a batch."""
    return windows.window_layout(
        policy_shapes(plan, policy), window_shape(plan, policy).records, shard_windows(plan, policy)
    )


def recorded_layout(plan: Plan, policy: str) -> Layout:
    """A batch of recorded episodes, whose records know nothing of who acted."""
    batch = plan.spec.policies[policy].batch
    records = batch.burn_in_steps + batch.fragment_steps
    every = windows.window_layout(policy_shapes(plan, policy), records, batch.fragments).fields
    return Layout.of(field for field in every if field.name not in _OF_STORES)


def draws_layout(plan: Plan, policy: str) -> Layout:
    """What a trainer sends to a replay rank."""
    return windows.draws_layout(shard_windows(plan, policy))


def request_layout(plan: Plan, policy: str) -> Layout:
    """What a group asks its policy server with."""
    return blocks.request_layout(
        policy_shapes(plan, policy),
        plan.spec.actors.environments,
        len(plan.seat(policy).agents),
        has_players=plan.spec.matches is not None,
    )


def reply_layout(plan: Plan, policy: str) -> Layout:
    """What the policy server answers."""
    return blocks.reply_layout(
        policy_shapes(plan, policy), plan.spec.actors.environments, len(plan.seat(policy).agents)
    )


def match_request_layout(plan: Plan) -> Layout:
    """What a group sends to the matchmaker."""
    assert plan.spec.matches is not None
    return matches.request_layout(plan.spec.matches.lot, len(plan.seats))


def matches_layout(plan: Plan) -> Layout:
    """A lot of matches."""
    assert plan.spec.matches is not None
    return matches.matches_layout(plan.spec.matches.lot, len(plan.seats))


def digest(plan: Plan) -> str:
    """Equal where spec, spaces and layouts are equal; compared on all ranks at start."""
    layouts = [block_layout(plan, seat.policy) for seat in plan.seats]
    layouts += [windows_layout(plan, policy) for policy in plan.trained_policies if plan.replays(policy)]
    data = plan.to_json() | {"layouts": [layout.digest for layout in layouts]}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
