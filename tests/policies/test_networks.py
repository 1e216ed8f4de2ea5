"""What every shipped network promises, whatever the observations, actions and memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from srlhpc.environment import ArraySpec, Continuous, Discrete, Kind, MultiDiscrete
from srlhpc.errors import UserError
from srlhpc.policies.policy import Acted, Policy, read_vector, vector_size, write_vector
from srlhpc.specs.contracts import ACTOR_CRITIC
from srlhpc.specs.policy import NormalizeSpec
from tests.policies.making import (
    EVERYTHING,
    NETWORKS,
    NOTHING,
    entity_kind,
    image,
    kind,
    network_settings,
    observations,
    policy,
    vector,
)

STEPS, COLUMNS = 9, 4
IMAGES = {"screen": image()}
MIXED = {"screen": image(), "body": vector(3), "lives": ArraySpec((), "int64"), "heat": image(1, dtype="float32")}
MEMORIES = {"none": None, "lstm": {"kind": "lstm", "size": 8}, "gru": {"kind": "gru", "size": 8}}
SERVED = {
    "vector": ("mlp", kind()),
    "dict to mlp": ("mlp", kind(MIXED)),
    "multi-discrete": ("mlp", kind(actions=MultiDiscrete((2, 3)))),
    "continuous": ("mlp", kind(actions=Continuous(2))),
    "masked": ("mlp", kind(masked=True)),
    "masked multi-discrete": ("mlp", kind(actions=MultiDiscrete((2, 3)), masked=True)),
    "nature": ("nature_cnn", kind(IMAGES)),
    "impala": ("impala_cnn", kind(IMAGES)),
    "minatar": ("minatar_cnn", kind({"cells": image(4, 10)})),
    "dict to nature": ("nature_cnn", kind(MIXED)),
    "entities": ("entities", entity_kind(MultiDiscrete((2, 3)))),
}


def played(
    made: Policy, agents: Kind
) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor | None, list[Acted]]:
    """A fragment acted step by step, with resets inside; observations, first, masks and what acting gave."""
    generator = torch.Generator().manual_seed(1)
    seen = observations(agents, STEPS, COLUMNS)
    first = torch.rand(STEPS, COLUMNS, generator=generator) < 0.25
    masks = None
    if agents.has_action_masks:
        masks = torch.rand(STEPS, COLUMNS, agents.actions.mask_size, generator=generator) < 0.6
        masks[..., [0, 2]] = True
    state = {name: torch.randn(rows.shape) for name, rows in made.initial_state(COLUMNS).items()}
    acted = [Acted(torch.empty(0), torch.empty(0), {}, state)]
    for t in range(STEPS):
        now = {key: array[t] for key, array in seen.items()}
        mask = None if masks is None else masks[t]
        acted.append(made.act(now, acted[-1].state, first[t], action_masks=mask, generator=generator))
    return seen, first, masks, acted


@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
@pytest.mark.parametrize("served", SERVED.values(), ids=SERVED)
@pytest.mark.parametrize("normalize", [NOTHING, EVERYTHING], ids=["raw", "normalized"])
def test_evaluating_a_fragment_gives_the_log_probs_and_values_of_acting(
    served: tuple[str, Kind], memory: dict[str, object] | None, normalize: NormalizeSpec
) -> None:
    network, agents = served
    made = policy(network, agents, normalize, recurrent=memory)
    seen, first, masks, (start, *acted) = played(made, agents)
    if normalize is EVERYTHING:
        valid = torch.ones(STEPS, COLUMNS, dtype=torch.bool)
        made.update_normalizers(made.normalizer_sums(seen, 5 + torch.randn(STEPS, COLUMNS), valid))
        seen, first, masks, (start, *acted) = played(made, agents)
    evaluated = made.evaluate(seen, start.state, first, action_masks=masks)
    log_probs = evaluated.distribution.log_prob(torch.stack([step.actions for step in acted]))
    torch.testing.assert_close(log_probs, torch.stack([step.log_probs for step in acted]), rtol=1e-5, atol=1e-5)
    values = made.denormalize_values(evaluated.values)
    expected = torch.stack([step.outputs["value"] for step in acted])
    torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("served", SERVED.values(), ids=SERVED)
def test_acting_gives_the_declared_shapes_and_dtypes(served: tuple[str, Kind]) -> None:
    network, agents = served
    made = policy(network, agents)
    acted = played(made, agents)[3][-1]
    assert acted.actions.shape == (COLUMNS, *agents.actions.array.shape)
    assert str(acted.actions.dtype) == f"torch.{agents.actions.array.dtype}"
    assert (acted.log_probs.shape, acted.log_probs.dtype) == ((COLUMNS,), torch.float32)
    declared = network_settings(network).offers(agents)[ACTOR_CRITIC].outputs
    assert {name: (tuple(rows.shape[1:]), str(rows.dtype)[6:]) for name, rows in acted.outputs.items()} == {
        name: (spec.shape, spec.dtype) for name, spec in declared.items()
    }


@pytest.mark.parametrize("memory", ["lstm", "gru"])
@pytest.mark.parametrize(
    ("network", "chosen"), [("mlp", {}), ("entities", {}), ("entities", {"shared": True})], ids=str
)
def test_state_has_the_arrays_that_the_settings_declare(memory: str, network: str, chosen: dict[str, bool]) -> None:
    settings = network_settings(network, recurrent=MEMORIES[memory], **chosen)
    agents = kind() if network == "mlp" else entity_kind()
    state = policy(network, agents, recurrent=MEMORIES[memory], **chosen).initial_state(3)
    assert {name: tuple(rows.shape[1:]) for name, rows in state.items()} == {
        name: spec.shape for name, spec in settings.state_arrays().items()
    }
    assert all(not rows.any() for rows in state.values())


@pytest.mark.parametrize("network", ["mlp", "nature_cnn", "entities"])
def test_shuffled_records_give_what_the_fragment_gives(network: str) -> None:
    agents = entity_kind(Discrete(4)) if network == "entities" else kind(MIXED)
    made = policy(network, agents)
    seen = observations(agents, STEPS, COLUMNS)
    first = torch.zeros(STEPS, COLUMNS, dtype=torch.bool)
    order = torch.randperm(STEPS * COLUMNS)
    rows = {key: array.flatten(0, 1)[order] for key, array in seen.items()}
    whole = made.evaluate(seen, {}, first, action_masks=None)
    shuffled = made.evaluate(rows, {}, first.flatten()[order], action_masks=None)
    torch.testing.assert_close(shuffled.values, whole.values.flatten()[order])
    actions = torch.zeros(STEPS * COLUMNS, dtype=torch.int64)
    log_probs = whole.distribution.log_prob(actions.view(STEPS, COLUMNS)).flatten()[order]
    torch.testing.assert_close(shuffled.distribution.log_prob(actions), log_probs)


def test_acting_without_a_generator_takes_the_mode() -> None:
    agents = kind()
    made = policy("mlp", agents)
    seen, first = observations(agents, 8), torch.zeros(8, dtype=torch.bool)
    best = made.act(seen, {}, first, action_masks=None, generator=None)
    every = torch.stack(
        [made.evaluate(seen, {}, first, action_masks=None).distribution.log_prob(torch.full((8,), a)) for a in range(4)]
    )
    assert torch.equal(best.actions, every.argmax(0))


def test_rows_with_first_act_from_the_initial_state() -> None:
    agents = kind()
    made = policy("mlp", agents, recurrent=MEMORIES["lstm"])
    seen = observations(agents, 2)
    state = {name: torch.randn(2, 8) for name in ("h", "c")}
    reset = made.act(seen, state, torch.tensor([True, False]), action_masks=None, generator=None).state
    fresh = made.act(seen, made.initial_state(2), torch.tensor([False, False]), action_masks=None, generator=None).state
    torch.testing.assert_close(reset["h"][0], fresh["h"][0])
    assert not torch.allclose(reset["h"][1], fresh["h"][1])


def test_bytes_are_divided_by_255_whether_image_or_vector() -> None:
    scaled = kind({"screen": image(dtype="float32")})
    seen = observations(kind(IMAGES), 3)
    as_floats = {"screen": seen["screen"].float() / 255}
    first = torch.zeros(3, dtype=torch.bool)
    for network in NETWORKS:
        one, other = policy(network, kind(IMAGES)), policy(network, scaled)
        torch.testing.assert_close(
            one.evaluate(seen, {}, first, action_masks=None).values,
            other.evaluate(as_floats, {}, first, action_masks=None).values,
        )


def test_nature_cnn_has_the_published_sizes() -> None:
    made = policy("nature_cnn", kind({"screen": ArraySpec((4, 84, 84), "uint8")}))
    sizes = [tuple(p.shape) for name, p in made.named_parameters() if name.startswith("torso") and "weight" in name]
    assert sizes == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (512, 64 * 7 * 7)]


def test_impala_cnn_has_the_published_sizes() -> None:
    made = policy("impala_cnn", kind({"screen": ArraySpec((4, 84, 84), "uint8")}))
    sizes = [tuple(p.shape) for name, p in made.named_parameters() if name.startswith("torso") and "weight" in name]
    assert sizes == [(16, 4, 8, 8), (32, 16, 4, 4), (256, 32 * 9 * 9)]


def test_minatar_cnn_has_the_published_sizes() -> None:
    made = policy("minatar_cnn", kind({"cells": ArraySpec((6, 10, 10), "uint8")}))
    sizes = [tuple(p.shape) for name, p in made.named_parameters() if name.startswith("torso") and "weight" in name]
    assert sizes == [(16, 6, 3, 3), (128, 16 * 8 * 8)]


def test_initial_policy_is_nearly_uniform_and_initial_values_are_not_tiny() -> None:
    torch.manual_seed(0)
    made = NETWORKS["mlp"].build(NETWORKS["mlp"].Settings(kind="mlp"), kind(), NOTHING)
    weights = {name: parameter for name, parameter in made.named_parameters() if name.endswith("linear.weight")}
    assert weights["policy_head.linear.weight"].norm(dim=1).tolist() == pytest.approx([0.01] * 4, rel=1e-4)
    assert weights["value_head.linear.weight"].norm().item() == pytest.approx(1.0, rel=1e-4)
    evaluated = made.evaluate(observations(kind(), 5), {}, torch.zeros(5).bool(), action_masks=None)
    assert evaluated.distribution.entropy().exp().tolist() == pytest.approx([4.0] * 5, rel=1e-3)


@pytest.mark.parametrize("shared", [True, False])
def test_mlp_shares_layers_between_policy_and_value_only_if_told(shared: bool) -> None:
    made = policy("mlp", kind(), shared=shared)
    evaluated = made.evaluate(observations(kind(), 5), {}, torch.zeros(5).bool(), action_masks=None)
    evaluated.values.sum().backward()
    reached = {name.split(".")[0] for name, p in made.named_parameters() if p.grad is not None and p.grad.any()}
    assert reached == ({"torso", "value_head"} if shared else {"value_torso", "value_head"})


@pytest.mark.parametrize("served", ["dict to nature", "entities"])
def test_bfloat16_autocast_keeps_log_probs_and_values_float32_and_close(served: str) -> None:
    network, agents = SERVED[served]
    made = policy(network, agents)
    seen, first = observations(agents, 16), torch.zeros(16, dtype=torch.bool)
    exact = made.act(seen, {}, first, action_masks=None, generator=None)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = made.act(seen, {}, first, action_masks=None, generator=None)
    assert rough.log_probs.dtype == rough.outputs["value"].dtype == torch.float32
    torch.testing.assert_close(rough.outputs["value"], exact.outputs["value"], rtol=0.1, atol=0.1)


def test_normalized_observations_are_clipped_at_ten() -> None:
    agents = kind({"body": vector(2)})
    made = policy("mlp", agents, NormalizeSpec(observations=True))
    seen = {"body": torch.tensor([[[-1.0, 1.0]], [[1.0, -1.0]]])}
    made.update_normalizers(made.normalizer_sums(seen, torch.zeros(2, 1), torch.ones(2, 1).bool()))
    first = torch.zeros(3, dtype=torch.bool)
    far = {"body": torch.tensor([[10.0, 0.0], [11.0, 0.0], [1e9, 0.0]])}
    values = made.evaluate(far, {}, first, action_masks=None).values
    torch.testing.assert_close(values, values[:1].expand(3))


def test_statistics_travel_in_the_flat_vector() -> None:
    agents = kind(MIXED)
    made = policy("mlp", agents, EVERYTHING, recurrent=MEMORIES["lstm"])
    seen = observations(agents, STEPS, COLUMNS)
    made.update_normalizers(made.normalizer_sums(seen, torch.randn(STEPS, COLUMNS), torch.ones(STEPS, COLUMNS).bool()))
    flat = np.empty(vector_size(made), np.float32)
    write_vector(made, flat)
    copy = policy("mlp", agents, EVERYTHING, seed=7, recurrent=MEMORIES["lstm"])
    read_vector(copy, flat)
    rows = observations(agents, COLUMNS, seed=3)
    first = torch.ones(COLUMNS, dtype=torch.bool)
    one, other = (p.act(rows, p.initial_state(COLUMNS), first, action_masks=None, generator=None) for p in (made, copy))
    assert torch.equal(one.log_probs, other.log_probs)
    assert torch.equal(one.outputs["value"], other.outputs["value"])


def test_integers_and_bytes_are_not_normalized() -> None:
    made = policy("mlp", kind(MIXED), NormalizeSpec(observations=True))
    sums = made.normalizer_sums(observations(kind(MIXED), 1, 1), torch.zeros(1, 1), torch.ones(1, 1).bool())
    assert len(sums) == 1 + 2 * (3 + 44 * 44)


@pytest.mark.parametrize("network", ["nature_cnn", "impala_cnn", "minatar_cnn"])
def test_image_network_refuses_agents_without_an_image(network: str) -> None:
    with pytest.raises(UserError, match=r"needs an image .* kind 'walkers' observe body \[6\]; use network mlp"):
        NETWORKS[network].Settings(kind=network).check(kind())


@pytest.mark.parametrize(("network", "least"), [("nature_cnn", 36), ("impala_cnn", 20), ("minatar_cnn", 3)])
def test_image_network_refuses_images_that_are_too_small(network: str, least: int) -> None:
    settings = NETWORKS[network].Settings(kind=network)
    settings.check(kind({"screen": image(size=least)}))
    NETWORKS[network].build(settings, kind({"screen": image(size=least)}), NOTHING)
    with pytest.raises(UserError, match=f"'screen' .* shape .2, {least - 1}, {least - 1}. .* at least {least}"):
        settings.check(kind({"screen": image(size=least - 1)}))


def test_image_network_refuses_images_of_different_sizes() -> None:
    with pytest.raises(UserError, match="one height and width"):
        NETWORKS["nature_cnn"].Settings(kind="nature_cnn").check(kind({"a": image(), "b": image(size=60)}))


def test_mlp_refuses_separate_layers_with_memory() -> None:
    with pytest.raises(ValidationError, match="shared is false"):
        NETWORKS["mlp"].Settings.model_validate({"kind": "mlp", "shared": False, "recurrent": MEMORIES["gru"]})


def test_settings_and_checks_load_no_torch() -> None:
    script = (
        "import sys\n"
        "from srlhpc.environment import ArraySpec, Discrete, Kind\n"
        "from srlhpc.policies import entities, impala_cnn, minatar_cnn, mlp, nature_cnn\n"
        "import srlhpc.algorithms.ppo\n"
        "agents = Kind('k', ('a',), {'o': ArraySpec((4, 84, 84), 'uint8')}, Discrete(2))\n"
        "for name, module in zip(('minatar_cnn', 'nature_cnn', 'impala_cnn'), (minatar_cnn, nature_cnn, impala_cnn)):\n"
        "    module.Settings(kind=name).check(agents)\n"
        "mlp.Settings(kind='mlp').check(agents)\n"
        "seen = {'body': ArraySpec((4,), 'float32'), 'others': ArraySpec((3, 5), 'float32')}\n"
        "network = entities.Settings(kind='entities', own=('body',), sets={'others': {}})\n"
        "network.check(Kind('k', ('a',), seen, Discrete(2)))\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_policies_serve_a_choice_among_one() -> None:
    agents = kind(actions=Discrete(1))
    acted = policy("mlp", agents).act(
        observations(agents, 3), {}, torch.ones(3).bool(), action_masks=None, generator=torch.Generator()
    )
    assert acted.log_probs.tolist() == [0.0, 0.0, 0.0]


def test_parameters_keep_the_names_and_the_order_that_checkpoints_know_them_by() -> None:
    # The optimiser's moments are flat, in this order.
    made = policy("mlp", kind(), EVERYTHING, hidden=(8,))
    moments = ["count", "mean", "m2", "shift", "scale"]
    assert list(made.state_dict()) == [
        *(f"encoder.moments.{name}" for name in moments),
        "torso.layers.0.weight",
        "torso.layers.0.bias",
        "value_torso.layers.0.weight",
        "value_torso.layers.0.bias",
        "policy_head.linear.weight",
        "policy_head.linear.bias",
        "value_head.linear.weight",
        "value_head.linear.bias",
        *(f"return_moments.{name}" for name in moments),
    ]
