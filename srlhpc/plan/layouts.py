"""How a plan's messages lie in memory. Pure."""

from __future__ import annotations

import hashlib
import json

from srlhpc.data import blocks
from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.layout import Layout
from srlhpc.plan.plan import Plan


def policy_shapes(plan: Plan, policy: str) -> PolicyShapes:
    """What a policy's records hold: arrays of its agents' kind, states of its network, and what its rule needs."""
    kind = plan.kind_of(policy)
    spec = plan.spec.policies[policy]
    needs = spec.algorithm.needs(kind)
    return PolicyShapes(kind, spec.network.state_arrays(), needs.outputs, needs.fields)


def fragment_records(plan: Plan, policy: str) -> int:
    """Records of one fragment, burn-in included."""
    batch = plan.spec.policies[policy].batch
    return batch.burn_in_steps + batch.fragment_steps


def block_layout(plan: Plan, policy: str) -> Layout:
    """A block: the fragments of one group."""
    return blocks.block_layout(
        policy_shapes(plan, policy),
        fragment_records(plan, policy),
        plan.spec.actors.environments,
        len(plan.seat(policy).trained),
        plan.spec.policies[policy].batch.chunks,
    )


def request_layout(plan: Plan, policy: str) -> Layout:
    """What a group asks its policy server with."""
    return blocks.request_layout(
        policy_shapes(plan, policy), plan.spec.actors.environments, len(plan.seat(policy).agents)
    )


def reply_layout(plan: Plan, policy: str) -> Layout:
    """What the policy server answers."""
    return blocks.reply_layout(
        policy_shapes(plan, policy), plan.spec.actors.environments, len(plan.seat(policy).agents)
    )


def digest(plan: Plan) -> str:
    """Equal where spec, spaces and layouts are equal; compared on all ranks at start."""
    data = plan.to_json() | {"layouts": [block_layout(plan, seat.policy).digest for seat in plan.seats]}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
