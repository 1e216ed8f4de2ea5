"""Kinds, observations and policies for the tests of policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from srlhpc.environment import ActionSpace, ArraySpec, Discrete, Kind
from srlhpc.policies import impala_cnn, mlp, nature_cnn
from srlhpc.policies.policy import Policy
from srlhpc.specs.experiment import NormalizeSpec

NETWORKS = {"mlp": mlp, "nature_cnn": nature_cnn, "impala_cnn": impala_cnn}
NOTHING = NormalizeSpec()
EVERYTHING = NormalizeSpec(observations=True, returns=True)


def kind(
    observations: Mapping[str, ArraySpec] | None = None, actions: ActionSpace | None = None, *, masked: bool = False
) -> Kind:
    return Kind("walkers", ("walker",), observations or {"body": vector(6)}, actions or Discrete(4), masked)


def vector(size: int) -> ArraySpec:
    return ArraySpec((size,), "float32")


def image(channels: int = 2, size: int = 44, dtype: str = "uint8") -> ArraySpec:
    return ArraySpec((channels, size, size), dtype)


def policy(network: str, agents: Kind, normalize: NormalizeSpec = NOTHING, seed: int = 0, **settings: Any) -> Policy:
    torch.manual_seed(seed)
    module = NETWORKS[network]
    built: Policy = module.build(module.Settings.model_validate({"kind": network, **settings}), agents, normalize)
    with torch.no_grad():
        for parameter in built.parameters():  # far from the initial near-uniform policy
            parameter += 0.05 * torch.randn(parameter.shape)
    return built


def observations(agents: Kind, *leading: int, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {key: _drawn(spec, leading, generator) for key, spec in agents.observations.items()}


def _drawn(spec: ArraySpec, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
    shape = (*leading, *spec.shape)
    if spec.dtype.startswith("float"):
        return torch.randn(shape, generator=generator, dtype=getattr(torch, spec.dtype))
    return torch.randint(0, 200, shape, generator=generator, dtype=getattr(torch, spec.dtype))
