"""Gradients of an actor and critics beside those of their losses, written out from the papers' equations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms.transitions import standard_normal
from tests.algorithms.actor_and_critics import SAC, TD3, Rule, learner
from tests.algorithms.collecting import context, finish
from tests.algorithms.transitions import windows

TEMPERATURE = 0.3


class Models:
    """An actor and critics, asked of observations without the module that is tested."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def outputs(self, observations: Tensor) -> Tensor:
        actor = self.module.actor
        result: Tensor = actor.head(actor.torso(actor.encode({"body": observations})))
        return result

    def values(self, observations: Tensor, actions: Tensor) -> Tensor:
        result: Tensor = self.module.critics(self.module.actor.encode({"body": observations}), actions)
        return result


Following = Callable[[Models, Models, Tensor, Tensor], Tensor]
"""The value that follows observations: by what is trained, by the targets, of observations, with noise."""


def soft_value(online: Models, target: Models, later: Tensor, noise: Tensor) -> Tensor:
    actions, log_probs = squashed(online.outputs(later), noise[1])
    return target.values(later, actions).min(0).values - TEMPERATURE * log_probs


def smoothed_value(online: Models, target: Models, later: Tensor, noise: Tensor) -> Tensor:
    clipped = (0.4 * noise).clamp(-0.5, 0.5)
    assert 0.1 < (clipped.abs() == 0.5).float().mean() < 0.4
    return target.values(later, (torch.tanh(target.outputs(later)) + clipped).clamp(-1, 1)).min(0).values


def soft_loss(online: Models, seen: Tensor, noise: Tensor) -> Tensor:
    actions, log_probs = squashed(online.outputs(seen), noise[0])
    return TEMPERATURE * log_probs - online.values(seen, actions).min(0).values


def first_loss(online: Models, seen: Tensor, noise: Tensor) -> Tensor:
    return -online.values(seen, torch.tanh(online.outputs(seen)))[0]


def squashed(outputs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    means, raw = outputs.chunk(2, dim=-1)
    stds = (-5 + 3.5 * (torch.tanh(raw) + 1)).exp()
    unbounded = means + stds * noise
    normal = torch.distributions.Normal(means, stds).log_prob(unbounded)
    return torch.tanh(unbounded), (normal - torch.log(1 - torch.tanh(unbounded) ** 2)).sum(-1)


@pytest.mark.parametrize(
    ("rule", "shape", "following", "actor_loss"),
    [
        (SAC | {"temperature": TEMPERATURE}, (2, 64, 2), soft_value, soft_loss),
        (TD3 | {"target_noise": 0.4}, (64, 2), smoothed_value, first_loss),
    ],
    ids=["sac", "td3"],
)
def test_gradients_are_those_of_the_written_out_losses(
    rule: Rule, shape: tuple[int, ...], following: Following, actor_loss: Callable[[Models, Tensor, Tensor], Tensor]
) -> None:
    trained, algorithm = learner(rule, polyak=0.25, actor_learning_rate=0.1)
    # From here on, targets differ from what they follow.
    finish(algorithm.update(windows()))
    online, target = copy.deepcopy(trained), copy.deepcopy(trained)
    state = algorithm.state()
    torch.nn.utils.vector_to_parameters(state["targets.parameters"], target.critics.parameters())
    if "actor_target.parameters" in state:
        torch.nn.utils.vector_to_parameters(state["actor_target.parameters"], target.actor.parameters())
    batch = windows(records=2, seed=1, version=1)
    seen, later = (batch.observations["body"][part].flatten(0, 1) for part in (slice(0, 2), slice(1, 3)))
    actions, rewards, terminated, valid = (
        batch.fields[name].flatten(0, 1) for name in ("actions", "rewards", "terminated", "valid")
    )
    noise = standard_normal(context(), 1, *shape)

    with torch.no_grad():
        targets = rewards + 0.99 * (1 - terminated.float()) * following(Models(online), Models(target), later, noise)
    values = Models(online).values(seen, actions)
    critic = (0.5 * (values - targets).square()).sum(0)[valid].mean()
    of_critics = torch.autograd.grad(critic, list(online.critics.parameters()))
    actor = actor_loss(Models(online), seen, noise)[valid].mean()
    of_actor = torch.autograd.grad(actor, list(online.actor.parameters()))

    metrics = finish(algorithm.update(batch))
    for module, gradients in ((trained.critics, of_critics), (trained.actor, of_actor)):
        for parameter, expected in zip(module.parameters(), gradients, strict=True):
            torch.testing.assert_close(parameter.grad, expected, rtol=1e-3, atol=1e-5)
    found = [metrics[name] for name in ("critic_loss", "actor_loss", "q_mean", "q_target_mean", "td_error")]
    errors = (values - targets)[:, valid].abs().mean()
    expected_metrics = [critic, actor, values[:, valid].mean(), targets[valid].mean(), errors]
    assert found == pytest.approx([number.item() for number in expected_metrics], rel=1e-4)
