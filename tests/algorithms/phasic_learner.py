"""Learners of phasic policy gradient in one process, and what belongs to their auxiliary phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from srlhpc.algorithms import ppg
from srlhpc.algorithms.algorithm import Algorithm, Batch, Context
from srlhpc.environment import ArraySpec
from srlhpc.policies import mlp
from srlhpc.policies.phasic import PhasicActorCritic, build_trained
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import Collector, context
from tests.algorithms.test_ppo_update import GRU, LSTM
from tests.algorithms.tiny_environments import Matching

NORMALIZED = NormalizeSpec(observations=True, returns="pop_art")
MEMORIES: dict[str, dict[str, Any]] = {
    "none": {},
    "lstm": {"recurrent": LSTM},
    "chunks": {"recurrent": GRU, "chunks": 3},
    "burn-in": {"recurrent": LSTM, "burn_in": 4},
}
SMALL = {"minibatches": 2, "auxiliary_minibatches": 2, "auxiliary_every_updates": 2, "auxiliary_epochs": 2}


def trained_of(
    environment: Matching,
    *,
    recurrent: dict[str, Any] | None = None,
    shared: bool | None = None,
    normalize: NormalizeSpec | None = None,
) -> PhasicActorCritic:
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "recurrent": recurrent, "shared": shared})
    normalize = normalize or NormalizeSpec()
    policy = mlp.build(network, environment.spaces.kinds[0], normalize)
    # The policy is the one that other rules train; the head is drawn after it.
    return build_trained(network, policy, normalize)


def arrays_of(batch: Batch) -> dict[str, ArraySpec]:
    return {name: ArraySpec(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for name, t in batch.fields.items()}


def rule(trained: PhasicActorCritic, batch: Batch, using: Context | None = None, **settings: Any) -> Algorithm:
    """The learner of what is trained, for batches like this one."""
    using = replace(using or context(), batch=arrays_of(batch))
    trained.to(using.device)
    return ppg.build(ppg.Settings.model_validate({"kind": "ppg", **SMALL, **settings}), trained, using)


def collector(
    environment: Matching, trained: PhasicActorCritic, *, burn_in: int = 0, chunks: int = 1, steps: int = 12
) -> Collector:
    return Collector(environment, trained.policy, steps=steps, seed=2, burn_in=burn_in, chunks=chunks)


def weights(trained: PhasicActorCritic) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trained.state_dict().items()}


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def learnt(
    environment: Matching, memory: dict[str, Any] | None = None, normalize: NormalizeSpec | None = None
) -> tuple[PhasicActorCritic, list[Batch]]:
    """What is to be trained, and four batches that it acted without learning."""
    memory = memory or {}
    trained = trained_of(environment, recurrent=memory.get("recurrent"), normalize=normalize)
    acting = collector(environment, trained, chunks=memory.get("chunks", 1), burn_in=memory.get("burn_in", 0))
    return trained, [acting.batch() for _ in range(4)]
