"""PPO's settings for data that older parameters acted: what they weigh, and that they change nothing without lag."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms import ppo
from srlhpc.algorithms.algorithm import Batch
from srlhpc.algorithms.ppo.loss import Coefficients, ppo_loss
from srlhpc.algorithms.ppo.minibatches import Minibatch
from srlhpc.algorithms.ppo.proximal import log_probs_now
from srlhpc.environment import Discrete
from srlhpc.policies.contracts import Evaluated
from srlhpc.rl.distributions import Categorical
from srlhpc.rl.staleness import bounded_above, lag_weights
from tests.algorithms.collecting import SharedSum, changed, context, finish, finish_together
from tests.algorithms.test_ppo_update import GRU, LSTM, collected, columns, learner, parameters, same
from tests.algorithms.tiny_environments import Matching

SETTINGS: dict[str, dict[str, Any]] = {
    "weights by lag": {"lag_exponent": 1 / 3},
    "weights by lag, values clipped": {"lag_exponent": 0.5, "value_clip": 0.2},
    "ratios bounded": {"stale_ratio_clip": 1.0},
    "decoupled": {"decoupled": True},
    "decoupled, capped": {"decoupled": True, "decoupled_ratio_clip": 1.1},
    "all": {"lag_exponent": 1.0, "stale_ratio_clip": 1.5, "decoupled": True, "decoupled_ratio_clip": 2.0},
}


def aged(batch: Batch, spread: float = 0.3) -> Batch:
    """The batch as if older policies had acted it: column b is b % 4 updates old."""
    ages = torch.arange(batch.rewards.shape[1]) % 4
    moved = spread * torch.randn(batch.log_probs.shape, generator=torch.Generator().manual_seed(3)) * (ages > 0)
    return changed(
        replace(batch, version=10),
        log_probs=batch.log_probs - moved,
        versions=torch.full_like(batch.versions, 10) - ages,
    )


def fresh(batch: Batch) -> Batch:
    return changed(replace(batch, version=10), versions=torch.full_like(batch.versions, 10))


def two_actions(log_prob: Tensor) -> Categorical:
    """Its first action has these log-probabilities, with gradient."""
    return Categorical(torch.stack([log_prob, torch.log1p(-log_prob.exp())], -1))


def losses(
    now: float, behaviour: float, proximal: float | None, advantage: float, **numbers: Any
) -> tuple[float, float]:
    """The policy's loss of one record with such probabilities, and its derivative by the logarithm of `now`."""
    log_prob = torch.tensor([now]).log().requires_grad_()
    one = torch.ones(1)
    rows = Minibatch(
        observations={},
        state={},
        first=one.bool(),
        action_masks=None,
        actions=torch.zeros(1, dtype=torch.int64),
        old_log_probs=torch.tensor([behaviour]).log(),
        old_values=one,
        advantages=one * advantage,
        targets=one,
        valid=one.bool(),
        proximal=None if proximal is None else torch.tensor([proximal]).log(),
        stale=torch.tensor([numbers.pop("stale", True)]),
        weights=numbers.pop("weights", None),
    )
    coefficients = Coefficients(0.0, 0.2, None, 0.0, 0.0, **numbers)
    loss = ppo_loss(Evaluated(two_actions(log_prob), one), rows, coefficients)
    (gradient,) = torch.autograd.grad(loss.total, log_prob)
    return loss.total.item(), gradient.item()


@pytest.mark.parametrize(
    ("proximal", "advantage", "expected", "gradient"),
    [
        (None, 1.0, -1.2, 0.0),  # pi / mu = 2.6 is outside the clip
        (0.2, 1.0, -2.4, 0.0),  # 2 min(1.3, 1.2): pi / prox is outside, too
        (0.2, -1.0, 2.6, 2.6),
        (0.1, -1.0, 2.6, 2.6),  # prox = mu is plain PPO
        (0.25, 1.0, -2.6, -2.6),  # 2.5 * 1.04: inside, where plain PPO has no gradient
    ],
)
def test_decoupled_loss_by_worked_numbers(
    proximal: float | None, advantage: float, expected: float, gradient: float
) -> None:
    assert losses(0.26, 0.1, proximal, advantage) == pytest.approx((expected, gradient), rel=1e-5, abs=1e-6)


def test_ratio_of_the_decoupled_loss_is_capped() -> None:
    assert losses(0.26, 0.1, 0.25, 1.0, decoupled_ratio_clip=2.0)[0] == pytest.approx(-2.08, rel=1e-5)


@pytest.mark.parametrize(
    ("stale", "advantage", "expected", "gradient"),
    [(True, -1.0, 1.5, 0.0), (False, -1.0, 2.6, 2.6), (True, 1.0, -1.2, 0.0)],
)
def test_ratios_of_stale_records_count_so_much_at_most(
    stale: bool, advantage: float, expected: float, gradient: float
) -> None:
    found = losses(0.26, 0.1, None, advantage, stale_ratio_clip=1.5, stale=stale)
    assert found == pytest.approx((expected, gradient), rel=1e-5, abs=1e-6)


def test_ratio_below_the_bound_keeps_its_gradient() -> None:
    log_prob = torch.tensor([-1.0, -0.1], requires_grad=True)
    bound = bounded_above(log_prob, torch.tensor([-1.0, -1.0]), torch.ones(2, dtype=torch.bool), 2.0)
    (gradient,) = torch.autograd.grad(bound.sum(), log_prob)
    assert gradient.tolist() == [1.0, 0.0]


def test_weights_by_lag_are_those_of_stellaris_rates() -> None:
    lags = torch.tensor([[0, 1, 2, 7, 26, 5]])
    valid = torch.tensor([[True] * 5 + [False]])
    found = lag_weights(lags, valid, 1 / 3)
    assert found.flatten().tolist() == pytest.approx([1, 0.7937, 0.6934, 0.5, 0.3333, 0], abs=1e-4)


def test_weights_multiply_all_three_terms() -> None:
    full, half = (losses(0.26, 0.25, None, 1.0, weights=weights)[0] for weights in (None, torch.tensor([0.5])))
    assert half == pytest.approx(0.5 * full)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("recurrent", "chunks"), [(None, 1), (LSTM, 1), (LSTM, 3)], ids=["none", "lstm", "chunks"])
def test_without_lag_nothing_changes_to_the_bit(name: str, recurrent: dict[str, Any] | None, chunks: int) -> None:
    environment = Matching(Discrete(3))
    results = []
    for settings in ({key: value for key, value in SETTINGS[name].items() if key == "value_clip"}, SETTINGS[name]):
        policy, algorithm = learner(environment, recurrent=recurrent, learning_rate=1e-2, **settings)
        metrics = finish(algorithm.update(fresh(collected(environment, policy, chunks=chunks))))
        results.append((metrics, parameters(policy)))
    assert results[0][0] == results[1][0]
    assert same(results[0][1], results[1][1])


def test_weights_are_1_on_average_however_few_and_old_records_are() -> None:
    environment = Matching(Discrete(3))
    results = []
    for settings in ({}, {"lag_exponent": 1.0}):
        policy, algorithm = learner(environment, epochs=1, minibatches=1, **settings)
        batch = collected(environment, policy)
        t, b = batch.valid.nonzero()[0].tolist()
        alone = torch.zeros_like(batch.valid)
        alone[t, b] = True
        batch = changed(replace(batch, version=9), valid=alone, versions=torch.zeros_like(batch.versions))
        results.append(finish(algorithm.update(batch))["loss"])
    assert results[0] == pytest.approx(results[1], rel=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_with_lag_every_setting_matters(name: str) -> None:
    environment = Matching(Discrete(3))
    results = []
    for settings in ({key: value for key, value in SETTINGS[name].items() if key == "value_clip"}, SETTINGS[name]):
        policy, algorithm = learner(environment, learning_rate=1e-2, **settings)
        finish(algorithm.update(aged(collected(environment, policy))))
        results.append(parameters(policy))
    assert not same(results[0], results[1])


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("recurrent", "chunks"), [(None, 1), (LSTM, 3)], ids=["none", "chunks"])
def test_two_trainers_learn_what_one_learns_from_both_batches(
    name: str, recurrent: dict[str, Any] | None, chunks: int
) -> None:
    environment = Matching(Discrete(3), num_environments=16)
    settings: dict[str, Any] = {"minibatches": 1, "recurrent": recurrent, "learning_rate": 1e-2, **SETTINGS[name]}
    whole, alone = learner(environment, **settings)
    batch = aged(collected(environment, whole, chunks=chunks))
    batch.valid[:, :3] = False  # the trainers' valid counts differ
    expected = finish(alone.update(batch))
    shared = SharedSum(2)
    pairs = [learner(environment, context(seed, shared), **settings) for seed in (0, 1)]
    parts = [columns(batch, slice(8)), columns(batch, slice(8, 16))]
    metrics = finish_together([pair[1].update(part) for pair, part in zip(pairs, parts, strict=True)])
    del expected["ratio_max_deviation_first"], metrics[0]["ratio_max_deviation_first"]
    assert metrics[0] == pytest.approx(expected, rel=1e-3, abs=1e-5)
    torch.testing.assert_close(parameters(pairs[0][0]), parameters(whole), rtol=1e-3, atol=1e-4)


WITH_MEMORY = [(memory, *how) for memory in (LSTM, GRU) for how in ((0, 1, 1), (0, 3, 5), (4, 1, 3))]


@pytest.mark.parametrize(("recurrent", "burn_in", "chunks", "parts"), [(None, 0, 1, 1), (None, 0, 1, 5), *WITH_MEMORY])
def test_parameters_that_acted_say_again_what_they_said(
    recurrent: dict[str, Any] | None, burn_in: int, chunks: int, parts: int
) -> None:
    environment = Matching(Discrete(5), length=5)
    policy, _ = learner(environment, recurrent=recurrent)
    batch = collected(environment, policy, burn_in=burn_in, batches=2, chunks=chunks)
    now = log_probs_now(policy, batch, parts)
    assert batch.first[1:-1].any()
    torch.testing.assert_close(now[batch.valid], batch.log_probs[batch.valid], rtol=1e-4, atol=1e-5)
    assert not now[:burn_in].any()


def test_cap_without_decoupling_is_refused() -> None:
    with pytest.raises(ValueError, match="set decoupled: true, or leave it out"):
        ppo.Settings.model_validate({"kind": "ppo", "decoupled_ratio_clip": 2.0})
