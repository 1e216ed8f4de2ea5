"""Batches of windows as replay would draw them, made by hand."""

from __future__ import annotations

from typing import Any

import torch

from srlhpc.algorithms.algorithm import Batch
from srlhpc.environment import Continuous, Kind
from tests.policies.making import kind, vector

WALKER = kind({"body": vector(3)}, Continuous(2))


def windows(agents: Kind = WALKER, *, records: int = 1, columns: int = 32, seed: int = 0, **changes: Any) -> Batch:
    """Random windows of agents with continuous actions and float observations; `changes` are attributes of the batch.

    About a sixth of the records is terminated, a sixth truncated and a sixth invalid.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = (records, columns)
    ends = torch.rand(shape, generator=generator)
    fields = {
        f"obs.{key}": torch.randn((records + 1, columns, *spec.shape), generator=generator)
        for key, spec in agents.observations.items()
    }
    fields |= {
        "actions": torch.rand((*shape, *agents.actions.array.shape), generator=generator) * 2 - 1,
        "rewards": torch.randn(shape, generator=generator),
        "terminated": ends < 1 / 6,
        "truncated": ends > 5 / 6,
        "valid": torch.rand(shape, generator=generator) < 5 / 6,
        "cut": torch.zeros(shape, dtype=torch.bool),
        "first": torch.zeros((records + 1, columns), dtype=torch.bool),
    }
    return Batch(fields, **({"burn_in_steps": 0, "version": 0, "steps": 0} | changes))
