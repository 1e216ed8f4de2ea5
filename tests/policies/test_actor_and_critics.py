"""What networks promise as `actor_and_critics`."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from srlhpc.environment import ArraySpec, Continuous, Discrete, Kind
from srlhpc.policies import impala_cnn, minatar_cnn, mlp, nature_cnn
from srlhpc.policies.actor_and_critics import TorsoActor
from srlhpc.policies.contracts import ActorAndCritics
from srlhpc.policies.policy import Policy, read_vector, vector_size, write_vector
from srlhpc.specs.actor_heads import ActorHead, DeterministicHead, SquashedGaussianHead
from srlhpc.specs.contracts import ACTOR_AND_CRITICS
from srlhpc.specs.policy import NormalizeSpec
from tests.policies.making import NOTHING, image, kind, network_settings, observations, vector

NETWORKS: dict[str, Any] = {
    "mlp": mlp,
    "nature_cnn": nature_cnn,
    "impala_cnn": impala_cnn,
    "minatar_cnn": minatar_cnn,
}
WALKER = kind(actions=Continuous(2))
MIXED = kind({"screen": image(), "body": vector(3), "lives": ArraySpec((), "int64")}, Continuous(2))
SERVED = {
    "vector": ("mlp", WALKER),
    "dict to mlp": ("mlp", MIXED),
    "nature": ("nature_cnn", kind({"screen": image()}, Continuous(3))),
    "impala": ("impala_cnn", MIXED),
    "minatar": ("minatar_cnn", kind({"cells": image(4, 10)}, Continuous(3))),
}
ROWS = 5
SQUASHED, DETERMINISTIC = SquashedGaussianHead(), DeterministicHead()
HEADS = pytest.mark.parametrize("head", [SQUASHED, DETERMINISTIC], ids=["squashed", "deterministic"])


def actor(
    network: str = "mlp",
    agents: Kind = WALKER,
    head: ActorHead = SQUASHED,
    normalize: NormalizeSpec = NOTHING,
    **settings: Any,
) -> TorsoActor:
    torch.manual_seed(0)
    made: TorsoActor = NETWORKS[network].build_actor(network_settings(network, **settings), agents, normalize, head)
    return made


def trained(
    network: str = "mlp", agents: Kind = WALKER, head: ActorHead = SQUASHED, **settings: Any
) -> ActorAndCritics[Any]:
    made = actor(network, agents, head, **settings)
    built: ActorAndCritics[Any] = NETWORKS[network].build_critics(network_settings(network, **settings), made, NOTHING)
    return built


@HEADS
@pytest.mark.parametrize("served", SERVED)
def test_layers_but_the_one_of_actions_start_with_biases(served: str, head: ActorHead) -> None:
    model = trained(*SERVED[served], head)
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    without = [layer for layer in layers if layer.bias is not None and not layer.bias.all()]
    assert without == [model.actor.head]


def acted(policy: Policy, seed: int | None = 0, rows: int = ROWS, **exploration: list[float]) -> tuple[Tensor, Tensor]:
    result = policy.act(
        observations(policy.kind, rows),
        {},
        torch.zeros(rows, dtype=torch.bool),
        action_masks=None,
        generator=None if seed is None else torch.Generator().manual_seed(seed),
        exploration={name: torch.tensor(numbers) for name, numbers in exploration.items()},
    )
    assert result.outputs == {}
    assert result.state == {}
    return result.actions, result.log_probs


@pytest.mark.parametrize("name", SERVED)
def test_actions_are_in_bounds_with_their_log_densities(name: str) -> None:
    policy = actor(*SERVED[name])
    actions, log_probs = acted(policy)
    assert actions.shape == (ROWS, policy.kind.actions.array.shape[0])
    assert actions.abs().max() < 1
    distribution = policy.distribution(policy.encode(observations(policy.kind, ROWS)))
    unbounded = torch.atanh(actions.double())
    normal = torch.distributions.Normal(distribution.means.double(), distribution.log_stds.double().exp())
    expected = (normal.log_prob(unbounded) - torch.log1p(-actions.double().square())).sum(-1)
    torch.testing.assert_close(log_probs.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SERVED)
def test_each_critic_values_observations_and_actions_by_parameters_of_its_own(name: str) -> None:
    module = trained(*SERVED[name])
    agents = module.actor.kind
    encoded = module.actor.encode(observations(agents, ROWS))
    actions = torch.rand(ROWS, agents.actions.array.shape[0]).requires_grad_()
    values = module.critics(encoded, actions)
    assert (values.shape, values.dtype) == ((2, ROWS), torch.float32)
    assert not torch.equal(values[0], values[1])
    assert torch.equal(module.critics.first(encoded, actions), values[0])
    values[0].sum().backward()
    assert actions.grad is not None
    assert (actions.grad != 0).any()
    gradients = [parameter.grad for parameter in module.critics.parameters()]
    assert sum(gradient is not None and bool(gradient.any()) for gradient in gradients) == len(gradients) / 2
    assert all(parameter.grad is None for parameter in module.actor.parameters())


@pytest.mark.parametrize("name", SERVED)
def test_leading_axes_become_rows_in_their_order(name: str) -> None:
    policy = actor(*SERVED[name])
    seen = observations(policy.kind, 3, ROWS)
    whole = policy.distribution(policy.encode(seen)).means
    parts = [policy.distribution(policy.encode({key: array[t] for key, array in seen.items()})).means for t in range(3)]
    torch.testing.assert_close(whole, torch.cat(parts), rtol=1e-5, atol=1e-6)


@HEADS
def test_actor_alone_travels(head: ActorHead) -> None:
    module = trained(head=head)
    policy, other = module.actor, actor(head=head, hidden=[64, 64])
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1)
    assert vector_size(policy) < sum(parameter.numel() for parameter in module.parameters()) / 2
    vector_ = torch.empty(vector_size(policy)).numpy()
    write_vector(policy, vector_)
    read_vector(other, vector_)
    assert torch.equal(acted(policy)[0], acted(other)[0])


def test_mode_is_acted_without_a_generator() -> None:
    policy = actor()
    actions, _ = acted(policy, seed=None)
    assert torch.equal(actions, policy.distribution(policy.encode(observations(policy.kind, ROWS))).mode())


@pytest.mark.parametrize("name", SERVED)
def test_deterministic_head_has_one_output_for_each_dimension_and_acts_by_it(name: str) -> None:
    policy = actor(*SERVED[name], DETERMINISTIC)
    assert isinstance(policy.kind.actions, Continuous)
    assert policy.head.weight.shape == (policy.kind.actions.size, policy.torso.features)
    expected = policy.distribution(policy.encode(observations(policy.kind, ROWS))).actions
    nothing = [0.0] * ROWS
    for actions, log_probs in (acted(policy, seed=None), acted(policy), acted(policy, uniform=nothing, std=nothing)):
        assert torch.equal(actions, expected)
        assert log_probs.tolist() == nothing


def test_deterministic_head_explores_by_gaussian_noise_of_each_rows_standard_deviation() -> None:
    rows = 4000
    policy = actor(head=DETERMINISTIC)
    stds = [0.0, 0.1] * (rows // 2)
    actions, log_probs = acted(policy, rows=rows, uniform=[0.0] * rows, std=stds)
    noise = actions - acted(policy, seed=None, rows=rows)[0]
    assert not noise[::2].any()
    assert noise[1::2].std(0).tolist() == pytest.approx([0.1] * 2, rel=0.05)
    assert log_probs[::2].tolist() == [0.0] * (rows // 2)
    expected = torch.distributions.Normal(0.0, 0.1).log_prob(noise[1::2]).sum(-1)
    torch.testing.assert_close(log_probs[1::2], expected, rtol=1e-3, atol=1e-3)


def test_factor_of_the_noise_goes_from_the_mode_to_the_distribution() -> None:
    policy = actor()
    assert torch.equal(acted(policy, uniform=[0.0] * ROWS, noise=[0.0] * ROWS)[0], acted(policy, seed=None)[0])
    drawn, log_probs = acted(policy, uniform=[0.0] * ROWS, noise=[1.0] * ROWS)
    assert torch.equal(drawn, acted(policy)[0])
    assert torch.equal(log_probs, acted(policy)[1])


@HEADS
def test_uniform_rows_draw_any_action_with_its_own_log_density(head: ActorHead) -> None:
    rows = 4000
    policy = actor(head=head)
    flags, others = [1.0, 0.0] * (rows // 2), {"noise": [1.0] * rows, "std": [0.1] * rows}
    actions, log_probs = acted(policy, rows=rows, uniform=flags, **others)
    uniform, drawn = actions[::2], actions[1::2]
    assert log_probs[::2].tolist() == [pytest.approx(-2 * math.log(2.0))] * (rows // 2)
    assert uniform.mean(0).abs().max() < 0.06
    assert uniform.square().mean(0).tolist() == pytest.approx([1 / 3] * 2, abs=0.03)
    alone = acted(policy, rows=rows, **others)
    assert torch.equal(drawn, alone[0][1::2])
    assert torch.equal(log_probs[1::2], alone[1][1::2])


@pytest.mark.parametrize("log_std", [0.0, -3.0])
def test_standard_deviation_starts_where_it_is_set(log_std: float) -> None:
    policy = actor(initial_log_std=log_std)
    log_stds = policy.distribution(policy.encode(observations(policy.kind, ROWS))).log_stds
    torch.testing.assert_close(log_stds, torch.full_like(log_stds, log_std), rtol=0, atol=0.1)


@pytest.mark.parametrize("network", NETWORKS)
def test_contract_is_offered_for_continuous_actions_without_memory(network: str) -> None:
    continuous, discrete = kind({"screen": image()}, Continuous(2)), kind({"screen": image()}, Discrete(3))
    assert ACTOR_AND_CRITICS in network_settings(network).offers(continuous)
    assert ACTOR_AND_CRITICS not in network_settings(network).offers(discrete)
    with_memory = network_settings(network, recurrent={"kind": "gru", "size": 4})
    assert ACTOR_AND_CRITICS not in with_memory.offers(continuous)


def test_images_and_normalised_vectors_reach_the_critics_encoded() -> None:
    policy = actor("nature_cnn", MIXED, normalize=NormalizeSpec(observations=True))
    encoded = policy.encode(observations(MIXED, ROWS))
    assert isinstance(policy.encoder, nn.Module)
    assert encoded.vector is not None
    assert encoded.vector.shape == (ROWS, 4)
    assert encoded.images is not None
