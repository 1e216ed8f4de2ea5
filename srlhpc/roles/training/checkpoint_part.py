"""What a policy's trainers put into a checkpoint, and how they take it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm
from srlhpc.policies.policy import Policy


@dataclass
class Counters:
    """Counters of one policy, over all its trainers and attempts."""

    updates: int = 0
    steps: int = 0
    """Trained steps: of each batch once, at its first use."""
    steps_used: int = 0
    """Steps of each batch, once for every update made of it."""
    agent_steps: int = 0
    """Trained decisions of agents, counted as `steps` are."""
    dropped_fragments: int = 0


def part_tensors(policy: Policy, algorithm: Algorithm) -> dict[str, dict[str, Tensor]]:
    """The live parameters and optimiser state."""
    return {
        "parameters": {name: tensor.detach() for name, tensor in policy.state_dict().items()},
        "optimizer": {name: tensor.detach() for name, tensor in algorithm.state().items()},
    }


def checkpoint_part(policy: Policy, algorithm: Algorithm, counters: Counters) -> dict[str, Any]:
    """Parameters, optimiser and counters. On a CPU, arrays are the live ones: whoever keeps them copies them."""
    tensors = part_tensors(policy, algorithm)
    arrays = {group: {name: t.cpu().numpy() for name, t in named.items()} for group, named in tensors.items()}
    return arrays | {"counters": counted(counters)}


def counted(counters: Counters) -> dict[str, int]:
    """The counters of a part."""
    return {**vars(counters), "version": counters.updates}


def load_part(part: Mapping[str, Any], policy: Policy, algorithm: Algorithm) -> Counters:
    """Puts a part of a checkpoint back; returns its counters.

    Raises:
        ValueError: names or shapes differ from those of the policy or the optimiser.
    """
    tensors = {name: torch.from_numpy(np.asarray(array)) for name, array in part["parameters"].items()}
    try:
        policy.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"the checkpoint's parameters do not fit the network: {error}") from None
    algorithm.load_state({name: torch.from_numpy(np.asarray(a)) for name, a in part["optimizer"].items()})
    counters = part["counters"]
    return Counters(**{name: int(counters[name]) for name in vars(Counters()) if name in counters})
