"""Builds the roles of a rank. Free of torch, until a role is built that needs it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace

from srlhpc.plan.plan import RolePlan
from srlhpc.plan.roles import ROLES
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.inputs import read_restored
from srlhpc.roles.role import Role

BUILDERS = {
    "trainer": "srlhpc.ranks.trainers:build_trainer",
    "replay": "srlhpc.ranks.replaying:build_replay",
    "policy_server": "srlhpc.ranks.serving:build_policy_server",
    "evaluator": "srlhpc.ranks.serving:build_evaluator",
    "actor": "srlhpc.ranks.actors:build_actor",
}
"""`module:function` by role, of a function that takes the rank's context and the role's plan. The coordinator is not
among them: it is built for rank 0 alone, and with the state of all others in a serial run."""


def build_role(context: RankContext, role: RolePlan) -> Role:
    """One role."""
    module, _, function = BUILDERS[role.name].partition(":")
    built: Role = getattr(importlib.import_module(module), function)(context, role)
    return built


def build_roles(context: RankContext) -> Iterator[Role]:
    """The roles of a rank, one after the other, so that those that are built are known if the next cannot be.

    A role comes after those that it may take something from: trainers before those who act with their parameters.
    """
    order = list(ROLES)
    planned = sorted(context.here.roles, key=lambda role: order.index(role.name))
    if any(ROLES[role.name].reads_checkpoint for role in planned):
        context = replace(context, restored=read_restored(context.paths, context.attempt))
    yield from (build_role(context, role) for role in planned)
