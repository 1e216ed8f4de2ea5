"""Batches of a team: what its agents have together, and what each has.

Letters: R records of a window, B columns (copies), A agents, S numbers of a state; `...` is the rest of a field.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.data.blocks import ENVIRONMENT_STATE, OBSERVATION, STATE
from srlhpc.environment import Kind

_OF_AGENTS = ("first", "action_masks", "actions", "rewards")
"""What is looked at of single agents beside what they saw."""
_BYTE = 255.0


def of_team(batch: Batch, reward: Literal["sum", "mean"]) -> Batch:
    """The team as one column that has a reward, ends and no observations: `[R, B]`.

    The reward is the sum, or the mean, over the agents whose record counts. A team is truncated where any of them is,
    else terminated where all of them are. So who leaves before the others ends nothing.
    """
    valid = batch.valid
    rewards = torch.where(valid, batch.rewards, 0.0).sum(-1)
    truncated = (batch.truncated & valid).any(-1)
    is_over = (batch.terminated | ~valid).all(-1) & valid.any(-1)
    fields = {
        "rewards": rewards if reward == "sum" else rewards / valid.sum(-1).clamp(min=1),
        "truncated": truncated,
        "terminated": is_over & ~truncated,
        "valid": valid.any(-1),
        "cut": batch.cut,
    }
    return dataclasses.replace(batch, fields=fields)


def of_agents(batch: Batch) -> Batch:
    """What the agents saw and did, side by side: `[R, B x A, ...]`, states `[B x A, ...]`."""
    fields = {
        name: tensor.flatten(0, 1) if name.startswith(STATE) else tensor.flatten(1, 2)
        for name, tensor in batch.fields.items()
        if name in _OF_AGENTS or name.startswith((OBSERVATION, STATE))
    }
    return dataclasses.replace(batch, fields=fields)


def present(batch: Batch) -> Tensor:
    """Whether an agent has a value in what an observation shows, bool `[R + 1, B, A]`: it is in the game there.

    Who terminated with the record before has none, though it is still shown where the whole episode ended.
    """
    there = batch.alive.clone()
    there[1:] &= ~(batch.terminated & batch.valid)
    return there


def states(batch: Batch) -> Tensor:
    """The state of each copy, float32 `[R + 1, B, S]`: what its environment gives, or its agents' observations."""
    if ENVIRONMENT_STATE in batch.fields:
        return _numbers(batch.fields[ENVIRONMENT_STATE]).flatten(2)
    return torch.cat([_numbers(array).flatten(2) for array in batch.observations.values()], dim=-1)


def state_size(kind: Kind, agents: int) -> int:
    """S."""
    if kind.state is not None:
        return torch.Size(kind.state.shape).numel()
    return agents * sum(torch.Size(array.shape).numel() for array in kind.observations.values())


def _numbers(array: Tensor) -> Tensor:
    return array.float() / _BYTE if array.dtype == torch.uint8 else array.float()
