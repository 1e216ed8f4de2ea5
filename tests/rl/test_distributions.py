from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from srlhpc.rl.distributions import Categorical, DiagonalGaussian, Distribution, MultiCategorical


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def softmax_by_definition(logits: list[float]) -> list[float]:
    total = sum(math.exp(logit) for logit in logits)
    return [math.exp(logit) / total for logit in logits]


def test_categorical_log_prob_follows_the_softmax() -> None:
    logits = [0.0, math.log(2.0), math.log(5.0)]
    log_probs = Categorical(torch.tensor([logits] * 3)).log_prob(torch.tensor([0, 1, 2]))
    assert log_probs.exp().tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8])


def test_categorical_entropy_of_equal_choices_is_the_log_of_their_number() -> None:
    assert Categorical(torch.zeros(1, 8)).entropy().item() == pytest.approx(math.log(8))


def test_categorical_samples_have_the_frequencies_of_the_probabilities() -> None:
    logits = torch.tensor([1.0, -1.0, 0.5, 0.0]).expand(40_000, 4)
    frequencies = torch.bincount(Categorical(logits).sample(generator()), minlength=4) / 40_000
    assert frequencies.tolist() == pytest.approx(softmax_by_definition([1.0, -1.0, 0.5, 0.0]), abs=0.01)


def test_categorical_mode_is_the_largest_allowed_logit() -> None:
    logits = torch.tensor([[3.0, 2.0, 1.0]])
    assert Categorical(logits).mode().item() == 0
    assert Categorical(logits, torch.tensor([[False, True, True]])).mode().item() == 1


def test_masked_choices_have_probability_zero_and_are_never_drawn() -> None:
    masks = torch.tensor([True, False, True, False]).expand(20_000, 4)
    distribution = Categorical(torch.tensor([0.0, 50.0, 0.0, -50.0]).expand(20_000, 4), masks)
    assert distribution.log_probs[0].exp().tolist() == [0.5, 0.0, 0.5, 0.0]
    assert set(distribution.sample(generator()).tolist()) == {0, 2}


def test_masked_entropy_and_gradients_are_finite_and_the_forbidden_gradient_is_zero() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    distribution = Categorical(logits, torch.tensor([[True, True, False]]))
    assert distribution.entropy().item() == pytest.approx(Categorical(torch.tensor([[1.0, 2.0]])).entropy().item())
    (distribution.entropy() + distribution.log_prob(torch.tensor([0]))).sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[0, 2].item() == 0.0


def test_mask_that_allows_one_choice_gives_entropy_zero() -> None:
    distribution = Categorical(torch.randn(5, 3), torch.tensor([False, True, False]).expand(5, 3))
    assert distribution.entropy().tolist() == [0.0] * 5
    assert distribution.log_prob(torch.ones(5, dtype=torch.int64)).tolist() == [0.0] * 5


def test_categorical_from_bfloat16_logits_computes_in_float32() -> None:
    assert Categorical(torch.randn(2, 3).bfloat16()).log_probs.dtype == torch.float32


def test_multi_categorical_equals_the_sum_of_its_parts() -> None:
    logits = torch.randn(6, 5, generator=generator())
    actions = torch.stack([torch.arange(6) % 2, torch.arange(6) % 3], dim=1)
    whole = MultiCategorical(logits, (2, 3))
    left, right = Categorical(logits[:, :2]), Categorical(logits[:, 2:])
    assert torch.equal(whole.log_prob(actions), left.log_prob(actions[:, 0]) + right.log_prob(actions[:, 1]))
    assert torch.equal(whole.entropy(), left.entropy() + right.entropy())
    assert torch.equal(whole.mode(), torch.stack([left.mode(), right.mode()], dim=1))


def test_multi_categorical_masks_apply_to_their_part() -> None:
    masks = torch.tensor([False, True, True, False, False]).expand(100, 5)
    actions = MultiCategorical(torch.zeros(100, 5), (2, 3), masks).sample(generator())
    assert actions.unique(dim=0).tolist() == [[1, 0]]


def test_multi_categorical_part_that_allows_nothing_is_uniform_over_its_own_choices() -> None:
    masks = torch.tensor([False, False, True, True, True]).expand(2_000, 5)
    distribution = MultiCategorical(torch.randn(5).expand(2_000, 5), (2, 3), masks)
    frequencies = torch.bincount(distribution.sample(generator())[:, 0], minlength=3) / 2_000
    assert frequencies.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=0.05)


def test_multi_categorical_is_differentiable_after_acting_in_inference_mode() -> None:
    logits = torch.randn(3, 9, requires_grad=True)
    with torch.inference_mode():
        actions = MultiCategorical(logits, (4, 2, 3)).sample(generator())
    distribution = MultiCategorical(logits, (4, 2, 3))
    (distribution.log_prob(actions.clone()) + distribution.entropy()).sum().backward()
    assert logits.grad is not None
    parts = [Categorical(part) for part in torch.split(logits.detach().requires_grad_(), [4, 2, 3], dim=-1)]
    assert logits.grad.isfinite().all()
    assert logits.grad.split([4, 2, 3], dim=-1)[1].sum(-1).abs().max() < 1e-6
    assert distribution.entropy().tolist() == pytest.approx(sum(part.entropy() for part in parts).tolist())


def test_gaussian_log_prob_follows_the_density() -> None:
    distribution = DiagonalGaussian(torch.tensor([[1.0, -1.0]]), torch.tensor([0.0, math.log(2.0)]))
    density = math.exp(-0.5) / math.sqrt(2 * math.pi) * math.exp(-0.5 * 2.0**2) / (2 * math.sqrt(2 * math.pi))
    assert distribution.log_prob(torch.tensor([[2.0, 3.0]])).item() == pytest.approx(math.log(density), rel=1e-6)


def test_gaussian_samples_have_its_moments() -> None:
    distribution = DiagonalGaussian(torch.tensor([3.0, -2.0]).expand(40_000, 2), torch.tensor([0.5, 2.0]).log())
    samples = distribution.sample(generator())
    assert samples.mean(0).tolist() == pytest.approx([3.0, -2.0], abs=0.04)
    assert samples.std(0).tolist() == pytest.approx([0.5, 2.0], rel=0.02)


def test_gaussian_entropy_is_the_mean_negative_log_prob() -> None:
    distribution = DiagonalGaussian(torch.zeros(40_000, 2), torch.tensor([0.3, -0.7]))
    surprise = -distribution.log_prob(distribution.sample(generator())).mean().item()
    assert distribution.entropy()[0].item() == pytest.approx(surprise, abs=0.02)


def pairs() -> list[tuple[Distribution, Distribution]]:
    logits, others = torch.randn(2, 30_000, 5, generator=generator(1))[:, :1].expand(2, 30_000, 5)
    stds = torch.tensor([0.1, -0.2, 0.0, 0.3, 0.2])
    return [
        (Categorical(logits), Categorical(others)),
        (MultiCategorical(logits, (2, 3)), MultiCategorical(others, (2, 3))),
        (DiagonalGaussian(0.3 * logits, stds), DiagonalGaussian(0.3 * others, -stds)),
    ]


@pytest.mark.parametrize("pair", pairs(), ids=["categorical", "multi", "gaussian"])
def test_kl_is_the_mean_log_ratio_of_samples(pair: tuple[Distribution, Distribution]) -> None:
    one, other = pair
    samples: Tensor = one.sample(generator())
    log_ratios = one.log_prob(samples) - other.log_prob(samples)
    assert one.kl(other)[0].item() == pytest.approx(log_ratios.mean().item(), abs=0.04)
    assert one.kl(one).abs().max().item() < 1e-6


@pytest.mark.parametrize("pair", pairs(), ids=["categorical", "multi", "gaussian"])
def test_samples_with_the_same_generator_seed_are_equal(pair: tuple[Distribution, Distribution]) -> None:
    assert torch.equal(pair[0].sample(generator(3)), pair[0].sample(generator(3)))
    assert not torch.equal(pair[0].sample(generator(3)), pair[0].sample(generator(4)))


@pytest.mark.parametrize(
    "distribution",
    [
        Categorical(torch.randn(7, 3, 4, generator=generator()), torch.tensor([True, True, False, True])),
        MultiCategorical(torch.randn(7, 3, 5, generator=generator()), (2, 3)),
        DiagonalGaussian(torch.randn(7, 3, 2, generator=generator()), torch.tensor([0.1, -0.5])),
    ],
    ids=["categorical", "multi", "gaussian"],
)
def test_distribution_of_kept_numbers_is_that_of_before(distribution: Distribution) -> None:
    numbers = distribution.numbers()
    assert numbers.shape[:2] == (7, 3)
    assert not numbers.requires_grad
    other: Distribution = distribution.like(torch.zeros_like(numbers)).like(numbers)
    assert torch.equal(distribution.kl(other), torch.zeros(7, 3)) or isinstance(distribution, DiagonalGaussian)
    assert distribution.kl(other).abs().max() < 1e-6
    actions = distribution.sample(generator())
    assert torch.equal(other.log_prob(actions), distribution.log_prob(actions))
    assert torch.equal(other.entropy(), distribution.entropy())
    # Some of them, too.
    torch.testing.assert_close(other.like(numbers[2]).entropy(), distribution.entropy()[2])
    torch.testing.assert_close(other.like(numbers[2]).log_prob(actions[2]), distribution.log_prob(actions)[2])


def test_divergence_is_from_the_first_to_the_second() -> None:
    old, new = (Categorical(torch.tensor(p).log()) for p in ([0.7, 0.2, 0.1], [0.5, 0.3, 0.2]))
    assert old.kl(new).item() == pytest.approx(0.0851228, abs=1e-6)
    assert new.kl(old).item() == pytest.approx(0.0920328, abs=1e-6)
