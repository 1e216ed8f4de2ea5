"""The entity network: what it sees, what it must not see, and its published sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.nn import functional

from srlhpc.environment import ArraySpec, Discrete, Kind, MultiDiscrete
from srlhpc.errors import UserError
from srlhpc.policies import entities
from srlhpc.policies.entities.torso import CircularConvolution
from srlhpc.policies.policy import Policy
from srlhpc.specs.policy import NormalizeSpec
from tests.policies.making import BOXES, EVERYTHING, KEYS, OTHERS, entity_kind, kind, network_settings, vector
from tests.policies.making import observations as drawn
from tests.policies.making import policy as made_policy

ROWS = 32
LSTM = {"kind": "lstm", "size": 8}


def policy(normalize: NormalizeSpec = EVERYTHING, **settings: Any) -> Policy:
    return made_policy("entities", entity_kind(), normalize, **settings)


def observations(seed: int = 0) -> dict[str, Tensor]:
    seen = drawn(entity_kind(), ROWS, seed=seed)
    seen["sees"] = (seen["sees"] > 0).float() * seen["is_there"]
    return seen


def logits_and_values(of: Policy, seen: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    evaluated = of.evaluate(seen, {}, torch.zeros(ROWS, dtype=torch.bool), action_masks=None)
    every = [evaluated.distribution.log_prob(torch.full((ROWS,), action)) for action in range(4)]
    return torch.stack(every).detach(), evaluated.values.detach()


def moved(seen: dict[str, Tensor], key: str, mask: Tensor) -> dict[str, Tensor]:
    """Other features of the entities that are masked."""
    return seen | {key: torch.where(mask.bool().unsqueeze(-1), seen[key], seen[key] + 3)}


def test_features_of_invisible_entities_do_not_reach_the_policy() -> None:
    seen = observations()
    one = policy()
    changed = moved(moved(seen, "others", seen["sees"]), "boxes", seen["sees_boxes"])
    assert torch.equal(logits_and_values(one, seen)[0], logits_and_values(one, changed)[0])
    assert not torch.allclose(logits_and_values(one, seen)[1], logits_and_values(one, changed)[1])


def test_features_of_missing_entities_do_not_reach_the_value() -> None:
    seen = observations()
    one = policy()
    changed = moved(seen, "others", seen["is_there"])
    assert torch.equal(logits_and_values(one, seen)[1], logits_and_values(one, changed)[1])


def test_visibility_does_not_reach_the_value_but_the_policy() -> None:
    seen = observations()
    one = policy()
    blind = seen | {"sees": torch.zeros(ROWS, OTHERS), "sees_boxes": torch.zeros(ROWS, BOXES, dtype=torch.bool)}
    assert torch.equal(logits_and_values(one, seen)[1], logits_and_values(one, blind)[1])
    assert not torch.allclose(logits_and_values(one, seen)[0], logits_and_values(one, blind)[0])


def test_visibility_reaches_the_value_of_a_shared_network() -> None:
    seen = observations()
    one = policy(shared=True)
    blind = seen | {"sees": torch.zeros(ROWS, OTHERS)}
    assert not torch.allclose(logits_and_values(one, seen)[1], logits_and_values(one, blind)[1])


def test_an_actor_without_a_visibility_mask_sees_what_exists() -> None:
    seen = observations()
    one = policy(sets={"others": {"exists": "is_there"}})
    assert torch.equal(
        logits_and_values(one, seen)[0], logits_and_values(one, moved(seen, "others", seen["is_there"]))[0]
    )


@pytest.mark.parametrize("shared", [False, True])
def test_policy_and_value_do_not_depend_on_the_order_of_entities(shared: bool) -> None:
    seen = observations()
    one = policy(shared=shared)
    order = torch.tensor([2, 0, 1])
    permuted = seen | {key: seen[key][:, order] for key in ("others", "sees", "is_there")}
    torch.testing.assert_close(logits_and_values(one, permuted), logits_and_values(one, seen))


def test_policy_and_value_are_finite_where_nothing_is_seen_and_nothing_exists() -> None:
    seen = observations()
    nothing = {key: torch.zeros_like(array) for key, array in seen.items()}
    one = policy()
    evaluated = one.evaluate(nothing, {}, torch.zeros(ROWS, dtype=torch.bool), action_masks=None)
    loss = evaluated.values.sum() + evaluated.distribution.entropy().sum()
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in one.parameters())


def test_actor_and_critic_share_no_parameter() -> None:
    one = policy(recurrent=LSTM)
    first = torch.ones(1, ROWS, dtype=torch.bool)
    seen = {key: array.unsqueeze(0) for key, array in observations().items()}
    one.evaluate(seen, one.initial_state(ROWS), first, action_masks=None).values.sum().backward()
    reached = {name.split(".")[0] for name, p in one.named_parameters() if p.grad is not None and p.grad.any()}
    assert reached == {"value_torso", "value_memory", "value_norm", "value_head"}


@pytest.mark.parametrize("name", ["h", "value_c"])
def test_both_memories_start_over_at_first(name: str) -> None:
    one = policy(recurrent=LSTM)
    seen, nothing = observations(), torch.zeros(ROWS, dtype=torch.bool)
    state = {key: torch.randn(rows.shape) for key, rows in one.initial_state(ROWS).items()}
    first = nothing.clone()
    first[:4] = True
    reset = one.act(seen, state, first, action_masks=None, generator=None).state[name]
    fresh = one.act(seen, one.initial_state(ROWS), nothing, action_masks=None, generator=None).state[name]
    torch.testing.assert_close(reset[:4], fresh[:4])
    assert not torch.isclose(reset[4:], fresh[4:]).all(dim=1).any()


def test_a_ring_turned_gives_the_same_features_turned() -> None:
    torch.manual_seed(0)
    convolution, x = CircularConvolution((2, 3), kernel=5), torch.randn(4, 2, 7)
    torch.testing.assert_close(convolution(x.roll(3, dims=2)), convolution(x).roll(3, dims=2))


def test_a_ring_is_convolved_as_if_it_were_repeated() -> None:
    torch.manual_seed(0)
    convolution, x = CircularConvolution((1, 3), kernel=3), torch.randn(4, 1, 7)
    layer = convolution.convolution
    expected = functional.conv1d(x.repeat(1, 1, 3), layer.weight, layer.bias, padding=1)[..., 7:14].relu()
    torch.testing.assert_close(convolution(x), expected)


def test_an_entity_is_embedded_by_one_layer_on_itself_and_the_agent() -> None:
    torch.manual_seed(0)
    agents = kind({"body": vector(4), "others": ArraySpec((3, 5), "float32")}, Discrete(2))
    settings = entities.Settings.model_validate(
        {"kind": "entities", "own": ["body"], "sets": {"others": {}}, "width": 6, "heads": 2}
    )
    one: Any = entities.build(settings, agents, NormalizeSpec())
    torso, body, others = one.torso, torch.randn(ROWS, 4), torch.randn(ROWS, 3, 5)
    inputs: list[Tensor] = []
    torso.attention.register_forward_pre_hook(lambda _, taken: inputs.append(taken[0]))
    torso(one.encoder({"body": body, "others": others}))
    weight = torch.cat([torso.own.weight[6:], torso.entities[0].weight], dim=1)
    both = torch.cat([body.unsqueeze(1).expand(-1, 3, -1), others], dim=2)
    torch.testing.assert_close(inputs[0][:, 1:], functional.linear(both, weight, torso.own.bias[6:]).relu())
    torch.testing.assert_close(
        inputs[0][:, 0], functional.linear(body, torso.own.weight[:6], torso.own.bias[:6]).relu()
    )


def test_entities_of_a_set_share_statistics_and_masks_have_none() -> None:
    one: Any = policy()
    seen = {key: array.unsqueeze(0) for key, array in observations().items()}
    one.update_normalizers(one.normalizer_sums(seen, torch.zeros(1, ROWS), torch.ones(1, ROWS, dtype=torch.bool)))
    parts = [seen["body"][0], seen["lidar"][0, :, 0], seen["others"].flatten(0, 2), seen["boxes"].flatten(0, 2)]
    torch.testing.assert_close(one.encoder.moments.shift, torch.cat([part.mean(0) for part in parts]))
    deviations = torch.cat([part.std(0, correction=0) for part in parts])
    torch.testing.assert_close(one.encoder.moments.scale, deviations)


def test_normalized_observations_are_clipped_where_the_spec_says() -> None:
    one: Any = policy(NormalizeSpec(observations=True, observation_clip=0.5, smallest_std=0.1))
    encoded = one.encoder(observations())
    assert encoded.own[:, :4].abs().max() == 0.5
    assert all(part.abs().max() == 0.5 for part in (*encoded.rings, *encoded.sets))
    assert encoded.own[:, 4:].max() > 1


HIDE_AND_SEEK: dict[str, Any] = {
    "kind": "entities",
    "own": ["observation_self"],
    "rings": {"lidar": {}},
    "sets": {
        "agent_qpos_qvel": {"visible": "mask_aa_obs", "exists": "mask_aa_obs_spoof"},
        "box_obs": {"visible": "mask_ab_obs", "exists": "mask_ab_obs_spoof"},
        "ramp_obs": {"visible": "mask_ar_obs", "exists": "mask_ar_obs_spoof"},
    },
    "recurrent": {"kind": "lstm", "size": 256},
}


def seekers(boxes: tuple[int, int], ramps: tuple[int, int]) -> Kind:
    sets = {"agent_qpos_qvel": (5, 10), "box_obs": boxes, "ramp_obs": ramps}
    seen = {key: ArraySpec(shape, "float32") for key, shape in sets.items()}
    seen |= {"observation_self": vector(10), "lidar": ArraySpec((1, 30), "float32")}
    for letter, (count, _) in zip("abr", sets.values(), strict=True):
        seen |= {f"mask_a{letter}_obs{kind_of}": vector(count) for kind_of in ("", "_spoof")}
    return kind(seen, MultiDiscrete((11, 11, 11, 2, 2)))


@pytest.mark.parametrize(
    ("boxes", "ramps", "parameters"),
    [((9, 15), (2, 15), 1_628_270), ((2, 12), (1, 9), 1_625_966)],
    ids=["randomwalls", "quadrant"],
)
def test_hide_and_seek_has_the_parameters_of_the_original(
    boxes: tuple[int, int], ramps: tuple[int, int], parameters: int
) -> None:
    made = entities.build(entities.Settings.model_validate(HIDE_AND_SEEK), seekers(boxes, ramps), EVERYTHING)
    assert sum(parameter.numel() for parameter in made.parameters()) == parameters


def test_initial_weights_of_the_policy_head_are_equally_small_for_every_part() -> None:
    torch.manual_seed(0)
    made: Any = entities.build(entities.Settings.model_validate(HIDE_AND_SEEK), seekers((9, 15), (2, 15)), EVERYTHING)
    for part in made.policy_head.linear.weight.split([11, 11, 11, 2, 2]):
        torch.testing.assert_close(part.norm(dim=0), torch.full((256,), 0.01))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "missing key": ({"own": ["bodi"]}, "own names 'bodi', which agents of kind 'walkers' do not see.*'body'"),
    "own is a set": ({"own": ["others"]}, r"own needs a vector \[size\], but observation 'others' .* shape \[3, 5\]"),
    "set is a vector": ({"sets": {"body": {}}}, r"sets needs \[entities, features\], but observation 'body'"),
    "mask of others": (
        {"sets": {"boxes": {"visible": "sees"}}}, "sets.boxes.visible is 'sees' of 3 entities, but 'boxes' has 2"
    ),
    "kernel": ({"rings": {"lidar": {"kernel": 7}}}, "rings.lidar has 6 places, fewer than kernel 7"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED)
def test_observations_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        network_settings("entities", **KEYS | changes).check(entity_kind())


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"heads": 3}, "width is 8, which 3 heads"), ({"rings": {"lidar": {"kernel": 4}}}, "kernel is 4; it must be odd")],
    ids=["heads", "kernel"],
)
def test_sizes_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        network_settings("entities", **changes)
