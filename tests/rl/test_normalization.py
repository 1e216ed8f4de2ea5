from __future__ import annotations

import pytest
import torch

from srlhpc.rl.normalization import RunningMoments, SharedMoments


def rows(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(seed)) * 4 + 100


def everything(part: torch.Tensor) -> torch.Tensor:
    return torch.ones(len(part), dtype=torch.bool)


def merged(*parts: torch.Tensor, decay: float | None = None) -> RunningMoments:
    moments = RunningMoments(3, decay=decay)
    for part in parts:
        moments.merge(moments.sums(part, everything(part)))
    return moments


def test_moments_merged_in_parts_equal_those_of_all_rows() -> None:
    data = rows(1000)
    moments = merged(data[:1], data[1:300], data[300:])
    assert moments.count.item() == 1000
    torch.testing.assert_close(moments.mean, data.double().mean(0))
    torch.testing.assert_close(moments.m2 / 1000, data.double().var(0, correction=0))


def test_moments_by_hand() -> None:
    moments = RunningMoments(1)
    for part in ([[0.0], [2.0]], [[4.0], [6.0]]):
        moments.merge(moments.sums(torch.tensor(part), torch.tensor([True, True])))
    assert (moments.mean.item(), moments.m2.item()) == (3.0, 9 + 1 + 1 + 9)


def test_sums_added_over_two_trainers_equal_those_of_one() -> None:
    data = rows(100)
    split, whole = merged(rows(10, seed=1)), merged(rows(10, seed=1))
    split.merge(split.sums(data[:30], everything(data[:30])) + split.sums(data[30:], everything(data[30:])))
    whole.merge(whole.sums(data, everything(data)))
    torch.testing.assert_close(split.state_dict(), whole.state_dict())


def test_invalid_rows_count_in_nothing_even_if_not_finite() -> None:
    data = rows(10)
    data[3] = float("nan")
    valid = everything(data)
    valid[3] = False
    moments = RunningMoments(3)
    moments.merge(moments.sums(data, valid))
    torch.testing.assert_close(moments.state_dict(), merged(data[valid]).state_dict())


def test_merge_without_rows_changes_nothing() -> None:
    moments = merged(rows(5))
    before = {name: tensor.clone() for name, tensor in moments.state_dict().items()}
    moments.merge(torch.zeros(moments.sums_size, dtype=torch.float64))
    assert all(torch.equal(before[name], tensor) for name, tensor in moments.state_dict().items())


def test_normalize_before_the_first_merge_is_the_identity() -> None:
    assert torch.equal(RunningMoments(3).normalize(rows(4)), rows(4))


def test_normalized_rows_have_zero_mean_and_unit_variance() -> None:
    data = rows(1000)
    normalized = merged(data).normalize(data)
    assert normalized.mean(0).tolist() == pytest.approx([0.0] * 3, abs=1e-4)
    assert normalized.std(0, correction=0).tolist() == pytest.approx([1.0] * 3, abs=1e-4)


def test_denormalize_is_the_inverse_of_normalize() -> None:
    moments = merged(rows(50))
    torch.testing.assert_close(moments.denormalize(moments.normalize(rows(20, seed=2))), rows(20, seed=2))


def test_constant_rows_normalize_to_zero() -> None:
    constant = torch.full((10, 3), 5.0)
    assert merged(constant).normalize(constant).tolist() == torch.zeros(10, 3).tolist()


def test_decayed_moments_equal_bias_corrected_averages_of_first_and_second_moments() -> None:
    parts = [rows(count, seed=count) + count for count in (3, 50, 7, 20)]
    mean, square, weight = torch.zeros(3).double(), torch.zeros(3).double(), 0.0
    for part in parts:
        mean = 0.75 * mean + 0.25 * part.double().mean(0)
        square = 0.75 * square + 0.25 * part.double().square().mean(0)
        weight = 0.75 * weight + 0.25
    moments = merged(*parts, decay=0.75)
    torch.testing.assert_close(moments.mean, mean / weight)
    torch.testing.assert_close(moments.m2 / moments.count, square / weight - (mean / weight).square())


def test_decayed_moments_after_one_merge_are_those_of_its_rows() -> None:
    data = rows(40)
    moments = merged(data, decay=0.99999)
    torch.testing.assert_close(moments.shift, data.mean(0))
    torch.testing.assert_close(moments.scale, data.std(0, correction=0))


def test_a_small_deviation_is_taken_as_the_smallest() -> None:
    moments = RunningMoments(1, smallest_std=0.5)
    data = torch.tensor([[1.0], [1.5]])
    moments.merge(moments.sums(data, everything(data)))
    assert moments.normalize(data).flatten().tolist() == [-0.5, 0.5]


def test_elements_of_one_feature_share_its_moments() -> None:
    data = rows(200)  # elements 0 and 2 are feature 1, element 1 is feature 0
    moments = SharedMoments([1, 0, 1])
    valid = everything(data)
    valid[:7] = False
    for part in (slice(50), slice(50, 200)):
        moments.merge(moments.sums(data[part], valid[part]))
    counted = data[valid]
    features = [counted[:, 1], counted[:, [0, 2]].flatten()]
    torch.testing.assert_close(moments.shift, torch.stack([feature.mean() for feature in features]))
    torch.testing.assert_close(moments.scale, torch.stack([feature.std(correction=0) for feature in features]))
    expected = (data - moments.shift[[1, 0, 1]]) / moments.scale[[1, 0, 1]]
    torch.testing.assert_close(moments.normalize(data), expected)
    torch.testing.assert_close(moments.denormalize(expected), data)
