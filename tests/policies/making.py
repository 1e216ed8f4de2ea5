"""Kinds, observations and policies for the tests of policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from srlhpc.environment import ActionSpace, ArraySpec, Discrete, Kind
from srlhpc.policies import entities, impala_cnn, minatar_cnn, mlp, nature_cnn
from srlhpc.policies.policy import Policy
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.policy import NormalizeSpec

NETWORKS = {"mlp": mlp, "nature_cnn": nature_cnn, "impala_cnn": impala_cnn, "minatar_cnn": minatar_cnn}
NOTHING = NormalizeSpec()
EVERYTHING = NormalizeSpec(observations=True, returns=True)


KEYS: dict[str, Any] = {
    "own": ["body", "gear"],
    "rings": {"lidar": {"channels": 2}},
    "sets": {"others": {"visible": "sees", "exists": "is_there"}, "boxes": {"visible": "sees_boxes"}},
}
SMALL = {"width": 8, "heads": 2, "features": 16}
OTHERS, BOXES = 3, 2
"""Entities of the sets."""


def entity_kind(actions: ActionSpace | None = None) -> Kind:
    """Agents that see sets of entities; `own` has a part that is no float."""
    return kind(
        {
            "body": vector(4),
            "gear": ArraySpec((2,), "int64"),
            "lidar": ArraySpec((1, 6), "float32"),
            "others": ArraySpec((OTHERS, 5), "float32"),
            "boxes": ArraySpec((BOXES, 7), "float32"),
            "sees": ArraySpec((OTHERS,), "float32"),
            "is_there": ArraySpec((OTHERS,), "bool"),
            "sees_boxes": ArraySpec((BOXES,), "bool"),
        },
        actions,
    )


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
    module = entities if network == "entities" else NETWORKS[network]
    built: Policy = module.build(network_settings(network, **settings), agents, normalize)
    with torch.no_grad():
        for parameter in built.parameters():  # far from the initial near-uniform policy
            parameter += 0.05 * torch.randn(parameter.shape)
    return built


def network_settings(network: str, **settings: Any) -> NetworkSettings:
    if network == "entities":
        return entities.Settings.model_validate({"kind": network, **KEYS, **SMALL, **settings})
    made: NetworkSettings = NETWORKS[network].Settings.model_validate({"kind": network, **settings})
    return made


def observations(agents: Kind, *leading: int, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {key: _drawn(spec, leading, generator) for key, spec in agents.observations.items()}


def _drawn(spec: ArraySpec, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
    shape = (*leading, *spec.shape)
    if spec.dtype == "bool":
        return torch.rand(shape, generator=generator) < 0.5
    if spec.dtype.startswith("float"):
        return torch.randn(shape, generator=generator, dtype=getattr(torch, spec.dtype))
    return torch.randint(0, 200, shape, generator=generator, dtype=getattr(torch, spec.dtype))
