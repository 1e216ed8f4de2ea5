from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from srlhpc.rl.returns import gae, vtrace

GAMMA, LAMBDA = 0.9, 0.8


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers).unsqueeze(1)


def flags(*numbers: int) -> Tensor:
    return torch.tensor(numbers).bool().unsqueeze(1)


def random_fragment(steps: int = 12, columns: int = 5) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    rewards, values, next_values = torch.randn(3, steps, columns, generator=generator, dtype=torch.float64)
    ends = torch.rand(2, steps, columns, generator=generator) < 0.15
    return rewards, values, next_values, ends[0], ends[1] & ~ends[0]


def test_gae_by_hand_without_ends() -> None:
    advantages = gae(
        column(1.0, 1.0, 2.0),
        column(1.0, 2.0, 0.5),
        column(2.0, 0.5, 2.0),
        flags(0, 0, 0),
        flags(0, 0, 0),
        gamma=0.5,
        lambda_=0.5,
    )
    # deltas 1, -0.75, 2.5; decay 0.25
    assert advantages.flatten().tolist() == [0.96875, -0.125, 2.5]


def test_termination_drops_bootstrap_and_stops_the_recursion() -> None:
    advantages = gae(
        column(1.0, 4.0), column(0.0, 0.0), column(8.0, 8.0), flags(1, 0), flags(0, 0), gamma=0.5, lambda_=1.0
    )
    assert advantages.flatten().tolist() == [1.0, 8.0]


def test_truncation_keeps_bootstrap_but_stops_the_recursion() -> None:
    advantages = gae(
        column(1.0, 4.0), column(0.0, 0.0), column(8.0, 8.0), flags(0, 0), flags(1, 0), gamma=0.5, lambda_=1.0
    )
    assert advantages.flatten().tolist() == [5.0, 8.0]


def test_gae_equals_the_double_loop_of_the_paper() -> None:
    rewards, values, next_values, terminated, truncated = random_fragment()
    advantages = gae(rewards, values, next_values, terminated, truncated, gamma=GAMMA, lambda_=LAMBDA)
    expected = torch.zeros_like(rewards)
    for b in range(rewards.shape[1]):
        for t in range(len(rewards)):
            for later in range(t, len(rewards)):
                bootstrap = 0.0 if terminated[later, b] else GAMMA * next_values[later, b]
                delta = rewards[later, b] + bootstrap - values[later, b]
                expected[t, b] += (GAMMA * LAMBDA) ** (later - t) * delta
                if terminated[later, b] or truncated[later, b]:
                    break
    torch.testing.assert_close(advantages, expected)


def test_gae_with_lambda_zero_is_the_td_error() -> None:
    rewards, values, next_values, terminated, truncated = random_fragment()
    advantages = gae(rewards, values, next_values, terminated, truncated, gamma=GAMMA, lambda_=0.0)
    assert torch.equal(advantages, rewards + GAMMA * next_values * ~terminated - values)


def test_gae_split_at_an_episode_end_changes_nothing() -> None:
    fragment = random_fragment()
    fragment[4][5] = True
    fragment[3][5] = False
    whole = gae(*fragment, gamma=GAMMA, lambda_=LAMBDA)
    parts = [
        gae(*(array[part] for array in fragment), gamma=GAMMA, lambda_=LAMBDA) for part in (slice(6), slice(6, 12))
    ]
    assert torch.equal(whole, torch.cat(parts))


def test_gae_ignores_what_an_invalid_record_after_an_end_holds() -> None:
    rewards, values, next_values, terminated, truncated = random_fragment()
    terminated[4] = True
    before = gae(rewards, values, next_values, terminated, truncated, gamma=GAMMA, lambda_=LAMBDA)
    rewards[5], values[5], next_values[5] = 1e6, -1e6, 1e6
    after = gae(rewards, values, next_values, terminated, truncated, gamma=GAMMA, lambda_=LAMBDA)
    assert torch.equal(before[:5], after[:5])


def consistent(fragment: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """V of a successor inside the fragment is its value, unless an episode ended in between."""
    rewards, values, next_values, terminated, truncated = fragment
    goes_on = ~(terminated | truncated)[:-1]
    next_values[:-1] = torch.where(goes_on, values[1:], next_values[:-1])
    return rewards, values, next_values, terminated, truncated


def test_vtrace_on_policy_gives_the_targets_of_gae_with_lambda_one() -> None:
    fragment = consistent(random_fragment())
    targets = vtrace(torch.zeros_like(fragment[0]), *fragment, gamma=GAMMA).targets
    torch.testing.assert_close(targets, gae(*fragment, gamma=GAMMA, lambda_=1.0) + fragment[1])


def test_vtrace_equals_the_sum_of_products_of_the_paper() -> None:
    rewards, values, next_values, terminated, truncated = fragment = consistent(random_fragment())
    log_ratios = torch.randn(rewards.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = vtrace(log_ratios, *fragment, gamma=GAMMA, rho_clip=1.5, c_clip=1.1)
    ratios = log_ratios.exp()
    targets = values.clone()
    for b in range(rewards.shape[1]):
        for t in range(len(rewards)):
            product = 1.0
            for later in range(t, len(rewards)):
                bootstrap = 0.0 if terminated[later, b] else GAMMA * next_values[later, b]
                delta = min(1.5, ratios[later, b]) * (rewards[later, b] + bootstrap - values[later, b])
                targets[t, b] += GAMMA ** (later - t) * product * delta
                product *= min(1.1, ratios[later, b])
                if terminated[later, b] or truncated[later, b]:
                    break
    torch.testing.assert_close(found.targets, targets)
    for b in range(rewards.shape[1]):
        for t in range(len(rewards)):
            inside = t + 1 < len(rewards) and not truncated[t, b]
            after = 0.0 if terminated[t, b] else targets[t + 1, b] if inside else next_values[t, b]
            expected = min(1.5, ratios[t, b]) * (rewards[t, b] + GAMMA * after - values[t, b])
            torch.testing.assert_close(found.advantages[t, b], expected)


class Column(NamedTuple):
    """One agent over time as the environment contract allows it, `[T, 1]` each; invalid records hold rubbish."""

    valid: Tensor
    rewards: Tensor
    values: Tensor
    next_values: Tensor
    terminated: Tensor
    truncated: Tensor
    log_ratios: Tensor

    @property
    def fragment(self) -> tuple[Tensor, ...]:
        return self.rewards, self.values, self.next_values, self.terminated, self.truncated

    def taken(self, part: slice | Tensor) -> Column:
        return Column(*(array[part] for array in self))


def random_column(seed: int, steps: int = 40) -> Column:
    """Episodes of one to six records, each with an invalid one after its end, then up to three out of the game."""
    generator = torch.Generator().manual_seed(seed)
    valid, terminated, truncated = torch.zeros(3, steps, 1, dtype=torch.bool)
    t = 0
    while t < steps:
        length, away = (int(torch.randint(low, high, (), generator=generator)) for low, high in ((1, 7), (0, 4)))
        valid[t : t + length] = True
        if t + length <= steps:
            ends = terminated if torch.rand((), generator=generator) < 0.5 else truncated
            ends[t + length - 1] = True
        t += length + 1 + away
    rewards, log_ratios = torch.randn(2, steps, 1, generator=generator, dtype=torch.float64)
    values = torch.randn(steps + 1, 1, generator=generator, dtype=torch.float64)
    rewards[~valid], log_ratios[~valid] = 1e6, 3.0
    after_end = torch.cat([torch.zeros(1, 1).bool(), (terminated | truncated)[:-1]])
    # The value in the record after an end is that of the last observation; those out of the game mean nothing.
    values[:-1][~valid & ~after_end] = -1e6
    return Column(valid, rewards, values[:-1], values[1:], terminated, truncated, log_ratios)


def windows(column: Column) -> Iterator[Column]:
    """Fragments of nine records that begin everywhere, so at and after ends, within episodes and out of the game."""
    for begin in range(len(column.valid) - 9):
        yield column.taken(slice(begin, begin + 9))


def until_the_end(column: Column, t: int) -> range:
    """Record t and those after it in its episode and in the fragment."""
    for later in range(t, len(column.valid)):
        if column.terminated[later] or column.truncated[later]:
            return range(t, later + 1)
    return range(t, len(column.valid))


@pytest.mark.parametrize("seed", range(4))
def test_gae_by_definition_wherever_records_are_invalid(seed: int) -> None:
    for column in windows(random_column(seed)):
        found = gae(*column.fragment, gamma=GAMMA, lambda_=LAMBDA)
        for t in column.valid.flatten().nonzero().flatten().tolist():
            expected = 0.0
            for later in until_the_end(column, t):
                bootstrap = 0.0 if column.terminated[later] else GAMMA * column.next_values[later].item()
                delta = column.rewards[later].item() + bootstrap - column.values[later].item()
                expected += (GAMMA * LAMBDA) ** (later - t) * delta
            assert found[t].item() == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_vtrace_by_definition_wherever_records_are_invalid(seed: int) -> None:
    for column in windows(random_column(seed)):
        found = vtrace(column.log_ratios, *column.fragment, gamma=GAMMA, rho_clip=1.5, c_clip=1.1)
        ratios = column.log_ratios.exp().flatten().tolist()
        for t in column.valid.flatten().nonzero().flatten().tolist():
            target, product = column.values[t].item(), 1.0
            for later in until_the_end(column, t):
                bootstrap = 0.0 if column.terminated[later] else GAMMA * column.next_values[later].item()
                delta = min(1.5, ratios[later]) * (
                    column.rewards[later].item() + bootstrap - column.values[later].item()
                )
                target += GAMMA ** (later - t) * product * delta
                product *= min(1.1, ratios[later])
            assert found.targets[t].item() == pytest.approx(target, rel=1e-6, abs=1e-6)
            goes_on = len(until_the_end(column, t)) > 1
            after = 0.0 if column.terminated[t] else (found.targets[t + 1] if goes_on else column.next_values[t]).item()
            advantage = min(1.5, ratios[t]) * (column.rewards[t].item() + GAMMA * after - column.values[t].item())
            assert found.advantages[t].item() == pytest.approx(advantage, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_removal_of_invalid_records_changes_nothing_for_the_others(seed: int) -> None:
    for column in [random_column(seed), *windows(random_column(seed))]:
        valid = column.valid.flatten()
        kept = column.taken(valid)
        if not len(kept.valid):
            continue
        whole = gae(*column.fragment, gamma=GAMMA, lambda_=LAMBDA)
        assert torch.equal(whole[valid], gae(*kept.fragment, gamma=GAMMA, lambda_=LAMBDA))
        with_invalid = vtrace(column.log_ratios, *column.fragment, gamma=GAMMA)
        without = vtrace(kept.log_ratios, *kept.fragment, gamma=GAMMA)
        assert torch.equal(with_invalid.targets[valid], without.targets)
        assert torch.equal(with_invalid.advantages[valid], without.advantages)
