"""Learners of an actor and critics, by the rules that train them from replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms import sac, td3
from srlhpc.algorithms.algorithm import Algorithm, Batch, Context
from srlhpc.algorithms.sac import update as sac_update
from srlhpc.algorithms.td3 import update as td3_update
from srlhpc.environment import Kind
from srlhpc.policies import mlp
from srlhpc.policies.contracts import ActorAndCritics
from srlhpc.specs.named_modules import AlgorithmSettings
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import context
from tests.algorithms.transitions import WALKER

SAC, TD3 = {"kind": "sac"}, {"kind": "td3", "actor_every_updates": 1}
CRITICS_ALONE = {"kind": "td3", "actor_every_updates": 1000}
"""TD3 in updates that do not move the actor."""
MOVING = pytest.mark.parametrize("rule", [SAC, TD3], ids=["sac", "td3"])
"""Rules in updates that move all parts."""
RULES = pytest.mark.parametrize("rule", [SAC, TD3, CRITICS_ALONE], ids=["sac", "td3", "critics alone"])
MODULES: dict[str, Any] = {"sac": sac, "td3": td3}

Rule = dict[str, Any]


def settings(rule: Rule, **keys: Any) -> AlgorithmSettings:
    made: AlgorithmSettings = MODULES[rule["kind"]].Settings.model_validate(rule | keys)
    return made


def learner(
    rule: Rule, using: Context | None = None, agents: Kind = WALKER, **keys: Any
) -> tuple[ActorAndCritics[Any], Algorithm]:
    torch.manual_seed(0)
    made, using = settings(rule, **keys), using or context()
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [16, 16], "activation": "relu"})
    head: Any = made.needs(agents).head
    trained = mlp.build_critics(network, mlp.build_actor(network, agents, NormalizeSpec(), head), NormalizeSpec())
    algorithm: Algorithm = MODULES[rule["kind"]].build(made, trained.to(using.device), using)
    return trained, algorithm


def everything(trained: ActorAndCritics[Any], algorithm: Algorithm) -> dict[str, Tensor]:
    tensors = {f"network.{name}": tensor.clone() for name, tensor in trained.state_dict().items()}
    return tensors | {name: tensor.clone() for name, tensor in algorithm.state().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one | other)


def flat(module: torch.nn.Module) -> Tensor:
    """All parameters of a module."""
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def columns(batch: Batch, part: slice) -> Batch:
    weights = None if batch.weights is None else batch.weights[part]
    return replace(batch, fields={name: tensor[:, part] for name, tensor in batch.fields.items()}, weights=weights)


def use_noise(monkeypatch: pytest.MonkeyPatch, noise: Any) -> None:
    """Lets both rules draw the noise of an update by another function."""
    for module in (sac_update, td3_update):
        monkeypatch.setattr(module, "standard_normal", noise)


def share_noise(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Lets each of two trainers draw the noise of its windows, as a single trainer of all of them would."""

    def noise(context: Context, version: int, *shape: int) -> Tensor:
        *leading, rows, dimensions = shape
        steps = rows // columns if rows % columns == 0 else 2 * rows // columns
        generator = torch.Generator().manual_seed(version)
        whole = torch.randn(*leading, steps, columns, dimensions, generator=generator)
        mine = slice(context.seed * columns // 2, (context.seed + 1) * columns // 2)
        return whole[..., slice(None) if rows == steps * columns else mine, :].flatten(-3, -2)

    use_noise(monkeypatch, noise)
