"""An actor-critic with a second value that only trainers have."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from srlhpc.environment import Kind
from srlhpc.policies.actor_critic import ActorCritic
from srlhpc.policies.phasic import PhasicActorCritic, build_trained
from srlhpc.specs.contracts import PHASIC_ACTOR_CRITIC
from tests.policies.making import NETWORKS, NOTHING, entity_kind, image, kind, network_settings, observations, policy

STEPS, COLUMNS = 5, 3
LSTM = {"kind": "lstm", "size": 8}
IMAGES = kind({"screen": image()})
MADE: dict[str, tuple[str, Kind, dict[str, Any]]] = {
    "dual": ("mlp", kind(), {"shared": False}),
    "detached": ("mlp", kind(), {"shared": True}),
    "memory": ("mlp", kind(), {"recurrent": LSTM}),
    "images": ("minatar_cnn", IMAGES, {}),
    "dual with memory": ("entities", entity_kind(), {"recurrent": LSTM}),
}


def made(name: str) -> tuple[PhasicActorCritic, Kind]:
    network, agents, settings = MADE[name]
    acts = policy(network, agents, **settings)
    assert isinstance(acts, ActorCritic)
    return build_trained(network_settings(network, **settings), acts, NOTHING), agents


def reached(module: nn.Module) -> set[str]:
    """Parts of the policy, and the auxiliary head, that have a gradient; it is taken away."""
    names = {
        name.removeprefix("policy.").split(".")[0]
        for name, parameter in module.named_parameters()
        if parameter.grad is not None and parameter.grad.any()
    }
    module.zero_grad()
    return names


def shown(agents: Kind, trained: PhasicActorCritic) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    first = torch.zeros(STEPS, COLUMNS, dtype=torch.bool)
    return observations(agents, STEPS, COLUMNS), trained.policy.initial_state(COLUMNS), first


@pytest.mark.parametrize("name", MADE)
def test_values_are_those_of_the_policy_to_the_bit(name: str) -> None:
    trained, agents = made(name)
    seen = shown(agents, trained)
    expected = trained.policy.evaluate(*seen, action_masks=None)
    for found in (trained.evaluate_apart(*seen, action_masks=None), trained.evaluate(*seen, action_masks=None)):
        assert torch.equal(found.values, expected.values)
        assert torch.equal(found.distribution.numbers(), expected.distribution.numbers())


@pytest.mark.parametrize("name", MADE)
def test_value_reaches_nothing_of_the_policy_in_the_policy_phase(name: str) -> None:
    trained, agents = made(name)
    seen = shown(agents, trained)
    trained.evaluate_apart(*seen, action_masks=None).distribution.entropy().sum().backward()
    of_policy = reached(trained)
    trained.evaluate_apart(*seen, action_masks=None).values.sum().backward()
    of_value = reached(trained)
    assert "torso" in of_policy
    assert "value_head" in of_value
    assert not of_policy & of_value
    if "dual" in name:
        trained.policy.evaluate(*seen, action_masks=None).values.sum().backward()
        assert reached(trained) == of_value


@pytest.mark.parametrize("name", MADE)
def test_auxiliary_value_reaches_what_the_policy_sees_by(name: str) -> None:
    trained, agents = made(name)
    seen = shown(agents, trained)
    trained.evaluate_apart(*seen, action_masks=None).distribution.entropy().sum().backward()
    of_policy = reached(trained)
    values = trained.evaluate(*seen, action_masks=None).auxiliary_values
    assert values.shape == (STEPS, COLUMNS)
    values.sum().backward()
    assert reached(trained) == of_policy - {"policy_head"} | {"auxiliary_head"}


@pytest.mark.parametrize("network", [*NETWORKS, "entities"])
def test_every_network_offers_it(network: str) -> None:
    agents = entity_kind() if network == "entities" else kind() if network == "mlp" else IMAGES
    offer = network_settings(network).offers(agents)[PHASIC_ACTOR_CRITIC]
    assert offer.build == "build"
    assert not hasattr(policy(network, agents), "auxiliary_head")
