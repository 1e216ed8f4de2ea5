"""Joint batches of a team, made by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from srlhpc.algorithms.algorithm import Batch
from srlhpc.environment import Discrete, Kind
from tests.algorithms.transitions import windows
from tests.policies.making import kind, vector

ACTIONS, STATE = 4, 5
TEAM = dataclasses.replace(kind({"body": vector(3)}, Discrete(ACTIONS)), agents=("a", "b", "c"), state=vector(STATE))
ALONE = dataclasses.replace(TEAM, agents=("a",))
MASKED = dataclasses.replace(TEAM, has_action_masks=True)


def team_batch(team: Kind = TEAM, *, records: int = 2, copies: int = 8, seed: int = 0, **changes: Any) -> Batch:
    """Random windows of copies with agents that are not there, ends and cuts; `changes` are attributes of the batch."""
    agents = len(team.agents)
    generator = torch.Generator().manual_seed(seed + 1)
    fields = windows(team, records=records, columns=copies * agents, seed=seed).fields
    joint = {name: tensor.unflatten(1, (copies, agents)) for name, tensor in fields.items()}  # type: ignore[no-untyped-call]
    joint["alive"] = torch.rand(records + 1, copies, agents, generator=generator) < 0.8
    joint["valid"] = joint["alive"][:-1] & (torch.rand(records, copies, 1, generator=generator) < 0.9)
    for name in ("terminated", "truncated", "rewards"):
        joint[name] *= joint["valid"]
    joint["actions"] = torch.randint(0, ACTIONS, (records, copies, agents), generator=generator)
    joint["cut"] = torch.rand(records, copies, generator=generator) < 0.1
    if team.has_action_masks:
        joint["action_masks"] = torch.rand(records + 1, copies, agents, ACTIONS, generator=generator) < 0.6
    if team.state is not None:
        joint["environment_state"] = torch.randn(records + 1, copies, *team.state.shape, generator=generator)
    return Batch(joint, **({"burn_in_steps": 0, "version": 0, "steps": 0} | changes))


def of_copies(batch: Batch, copies: slice) -> Batch:
    """Some copies of a batch."""
    fields = {
        name: tensor[copies] if name.startswith("state.") else tensor[:, copies]
        for name, tensor in batch.fields.items()
    }
    weights = None if batch.weights is None else batch.weights[copies]
    return dataclasses.replace(batch, fields=fields, weights=weights)


def without_state(team: Kind) -> Kind:
    return dataclasses.replace(team, state=None)
