"""What every shipped network promises as `action_values`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from srlhpc.environment import Discrete, Kind
from srlhpc.policies import entities, minatar_cnn
from srlhpc.policies.contracts import ActionValuePolicy
from srlhpc.policies.policy import Acted, vector_size, write_vector
from srlhpc.rl.action_choice import allowed
from srlhpc.specs.action_values import ActionValueHead, Atoms, Quantiles
from srlhpc.specs.contracts import ACTION_VALUES
from tests.policies.making import (
    NETWORKS,
    NOTHING,
    entity_kind,
    image,
    kind,
    network_settings,
    observations,
)

STEPS, COLUMNS, CHOICES = 9, 4, 4
IMAGES = {"screen": image()}
SERVED = {
    "vector": ("mlp", kind()),
    "masked": ("mlp", kind(masked=True)),
    "nature": ("nature_cnn", kind(IMAGES)),
    "impala": ("impala_cnn", kind(IMAGES)),
    "minatar": ("minatar_cnn", kind({"cells": image(4, 10)})),
    "entities": ("entities", entity_kind(Discrete(CHOICES))),
}
MEMORIES = {"none": None, "lstm": {"kind": "lstm", "size": 8}, "gru": {"kind": "gru", "size": 8}}
PLAIN = ActionValueHead()
HEADS = {
    "plain": PLAIN,
    "dueling": ActionValueHead(dueling=True),
    "streams": ActionValueHead(dueling=True, units=8),
    "quantiles": ActionValueHead(dueling=True, distribution=Quantiles(quantiles=5)),
    "atoms": ActionValueHead(distribution=Atoms(atoms=5, minimum=-1.0, maximum=1.0)),
}


def built(network: str, agents: Kind, head: ActionValueHead = PLAIN, **settings: Any) -> ActionValuePolicy:
    torch.manual_seed(0)
    modules: dict[str, Any] = {**NETWORKS, "entities": entities, "minatar_cnn": minatar_cnn}
    if network == "entities":
        settings["shared"] = True
    if network == "minatar_cnn":
        spec = minatar_cnn.Settings.model_validate({"kind": network, **settings})
    else:
        spec = network_settings(network, **settings)
    assert ACTION_VALUES in spec.offers(agents)
    assert spec.offers(agents)[ACTION_VALUES].build == "build_action_values"
    policy: ActionValuePolicy = modules[network].build_action_values(spec, agents, NOTHING, head)
    assert policy.initial_state(3).keys() == spec.state_arrays().keys()
    return policy


def made(network: str, agents: Kind, head: ActionValueHead = PLAIN, **settings: Any) -> ActionValuePolicy:
    """The same after it has learnt something."""
    policy = built(network, agents, head, **settings)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.05 * torch.randn(parameter.shape)
    return policy


@pytest.mark.parametrize("served", SERVED)
def test_layers_start_with_biases(served: str) -> None:
    policy = built(*SERVED[served], HEADS["streams"])
    layers = [layer for layer in policy.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    assert layers
    for layer in layers:
        assert layer.bias is None or layer.bias.all()


def played(policy: ActionValuePolicy, agents: Kind) -> tuple[Any, torch.Tensor, torch.Tensor | None, list[Acted]]:
    """A fragment acted step by step, with resets inside; observations, first, masks and what acting gave."""
    generator = torch.Generator().manual_seed(1)
    seen = observations(agents, STEPS, COLUMNS)
    first = torch.rand(STEPS, COLUMNS, generator=generator) < 0.25
    masks = torch.rand(STEPS, COLUMNS, CHOICES, generator=generator) < 0.6 if agents.has_action_masks else None
    state = {name: torch.randn(rows.shape) for name, rows in policy.initial_state(COLUMNS).items()}
    acted = [Acted(torch.empty(0), torch.empty(0), {}, state)]
    exploration = {"epsilon": torch.tensor([0.0, 0.3, 0.6, 1.0])}
    for t in range(STEPS):
        now = {key: array[t] for key, array in seen.items()}
        mask = None if masks is None else masks[t]
        acted.append(
            policy.act(now, acted[-1].state, first[t], action_masks=mask, generator=generator, exploration=exploration)
        )
    return seen, first, masks, acted


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
@pytest.mark.parametrize("served", SERVED.values(), ids=SERVED)
def test_values_of_a_fragment_are_those_that_acting_told(
    served: tuple[str, Kind], memory: dict[str, object] | None, head: ActionValueHead
) -> None:
    network, agents = served
    policy = made(network, agents, head, recurrent=memory)
    seen, first, masks, (start, *acted) = played(policy, agents)
    found = policy.action_values(seen, start.state, first, action_masks=masks)
    assert found.means.shape == (STEPS, COLUMNS, CHOICES)
    assert found.means.requires_grad
    actions = torch.stack([one.actions for one in acted])
    taken = found.means.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    told = torch.stack([one.outputs["q_taken"] for one in acted])
    torch.testing.assert_close(taken.detach(), told, atol=1e-4, rtol=1e-4)
    means = found.means if masks is None else found.means.masked_fill(~allowed(masks), -torch.inf)
    greatest = torch.stack([one.outputs["q_max"] for one in acted])
    torch.testing.assert_close(means.amax(-1).detach(), greatest, atol=1e-4, rtol=1e-4)
    assert torch.equal(told[:, 0], greatest[:, 0])
    assert not torch.equal(told, greatest)


@pytest.mark.parametrize("memory", ["lstm", "gru"])
def test_warmed_up_state_is_that_of_acting(memory: str) -> None:
    agents = kind()
    policy = made("mlp", agents, recurrent=MEMORIES[memory])
    seen, first, _, (start, *acted) = played(policy, agents)
    state = policy.warm_up(seen, start.state, first)
    assert state.keys() == acted[-1].state.keys()
    for name, rows in acted[-1].state.items():
        torch.testing.assert_close(state[name], rows)
        assert not state[name].requires_grad


def test_dueling_subtracts_the_mean_of_allowed_advantages() -> None:
    policy = made("mlp", kind(actions=Discrete(3), masked=True), ActionValueHead(dueling=True))
    with torch.no_grad():
        for parameter in policy.head.parameters():  # type: ignore[union-attr]
            parameter.zero_()
        policy.get_parameter("head.advantages.bias").copy_(torch.tensor([1.0, 2.0, 6.0]))
        policy.get_parameter("head.values.bias").fill_(2.0)
    seen, first = observations(policy.kind, 2), torch.zeros(2, dtype=torch.bool)
    masks = torch.tensor([[True, True, True], [True, False, True]])
    found = policy.action_values(seen, {}, first, action_masks=masks).means
    assert found[0].tolist() == [0.0, 1.0, 5.0]
    assert found[1, [0, 2]].tolist() == [-0.5, 4.5]


@pytest.mark.parametrize("name", ["quantiles", "atoms"])
def test_means_are_those_of_the_distribution(name: str) -> None:
    policy = made("mlp", kind(), HEADS[name])
    found = policy.action_values(observations(policy.kind, 6), {}, torch.zeros(6, dtype=torch.bool), action_masks=None)
    assert found.parts is not None
    assert found.parts.shape == (6, CHOICES, 5)
    if name == "atoms":
        assert policy.support is not None
        assert policy.support.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
        probabilities = found.parts.exp()
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(6, CHOICES))
        torch.testing.assert_close(found.means, (probabilities * policy.support).sum(-1))
    else:
        assert policy.support is None
        torch.testing.assert_close(found.means, found.parts.mean(-1))


def test_mode_is_the_greatest_value_for_certain() -> None:
    policy = made("mlp", kind())
    acted = policy.act(
        observations(policy.kind, 5), {}, torch.zeros(5, dtype=torch.bool), action_masks=None, generator=None
    )
    assert torch.equal(acted.outputs["q_taken"], acted.outputs["q_max"])
    assert acted.log_probs.tolist() == [0.0] * 5


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_all_parameters_and_nothing_else_travel(head: ActionValueHead) -> None:
    import numpy as np

    policy = made("mlp", kind(), head)
    vector = np.zeros(vector_size(policy), np.float32)
    write_vector(policy, vector)
    assert vector.size == sum(parameter.numel() for parameter in policy.parameters())


def test_values_are_float32_under_autocast() -> None:
    policy = made("nature_cnn", kind(IMAGES), HEADS["streams"])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = policy.action_values(
            observations(policy.kind, 3), {}, torch.zeros(3, dtype=torch.bool), action_masks=None
        )
    assert found.means.dtype == torch.float32
