"""What one update of V-trace promises beside learning."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms import ppo, vtrace
from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError
from srlhpc.algorithms.vtrace.loss import Coefficients, evaluated, vtrace_loss
from srlhpc.environment import Continuous, Discrete, MultiDiscrete
from srlhpc.errors import UserError
from srlhpc.policies import mlp
from srlhpc.policies.contracts import ActorCriticPolicy
from srlhpc.rl import returns
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import Collector, SharedSum, changed, context, finish, finish_together
from tests.algorithms.test_ppo_update import GRU, LSTM, collected, columns, cut, gradients, parameters, same
from tests.algorithms.tiny_environments import Matching

APPO = {"clip_ratio": 0.4, "old_policy_updates": 2}
RULES: dict[str, dict[str, Any]] = {"impala": {}, "appo": APPO}
NORMALIZED = NormalizeSpec(observations=True, returns=True)


def policy_of(
    environment: Matching, recurrent: dict[str, Any] | None = None, normalize: NormalizeSpec | None = None
) -> ActorCriticPolicy:
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "recurrent": recurrent})
    return mlp.build(network, environment.spaces.kinds[0], normalize or NormalizeSpec())


def learner(
    environment: Matching,
    using: Context | None = None,
    *,
    recurrent: dict[str, Any] | None = None,
    normalize: NormalizeSpec | None = None,
    **settings: Any,
) -> tuple[ActorCriticPolicy, Algorithm]:
    policy = policy_of(environment, recurrent, normalize)
    return policy, vtrace.build(
        vtrace.Settings.model_validate({"kind": "vtrace", **settings}), policy, using or context()
    )


def older(batch: Batch, spread: float = 0.5) -> Batch:
    """The batch as if another policy had acted it."""
    moved = spread * torch.randn(batch.log_probs.shape, generator=torch.Generator().manual_seed(3))
    return changed(batch, log_probs=batch.log_probs - moved)


@pytest.mark.parametrize("recurrent", [None, LSTM, GRU], ids=["none", "lstm", "gru"])
@pytest.mark.parametrize("actions", [Discrete(5), Continuous(2)], ids=["discrete", "continuous"])
def test_ratio_is_one_within_rounding_where_the_same_parameters_acted(
    recurrent: dict[str, Any] | None, actions: Discrete | Continuous
) -> None:
    environment = Matching(actions, length=5)
    policy, algorithm = learner(environment, recurrent=recurrent, learning_rate=1e-2)
    collector = Collector(environment, policy, steps=12, seed=2)
    for _ in range(5):
        batch = collector.batch()
        assert batch.first[1:-1].any()
        metrics = finish(algorithm.update(batch))
        assert metrics["ratio_max_deviation_first"] < 1e-5
        assert metrics["rho_mean"] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
@pytest.mark.parametrize("truncates", [False, True])
def test_without_lag_it_is_ppo_with_lambda_one(rule: str, recurrent: dict[str, Any] | None, truncates: bool) -> None:
    environment = Matching(Discrete(3), truncates=truncates)
    same_in_both = {"entropy_coefficient": 0.02, "minibatches": 1, "gamma": 0.9, "max_gradient_norm": None}
    policy, algorithm = learner(environment, recurrent=recurrent, **same_in_both, **RULES[rule])
    batch = collected(environment, policy)
    finish(algorithm.update(batch))
    other = policy_of(environment, recurrent)
    settings = {"kind": "ppo", "epochs": 1, "gae_lambda": 1.0, "normalize_advantages": False, **same_in_both}
    finish(ppo.build(ppo.Settings.model_validate(settings), other, context()).update(batch))
    assert gradients(policy).keys() == gradients(other).keys()
    for name, gradient in gradients(policy).items():
        torch.testing.assert_close(gradient, gradients(other)[name], rtol=1e-4, atol=1e-6)


def coefficients(**changes: Any) -> Coefficients:
    standard = Coefficients(
        gamma=0.9,
        trace_lambda=1.0,
        rho_clip=1.0,
        c_clip=1.0,
        policy_rho_clip=1.0,
        clip_ratio=None,
        value=0.5,
        entropy=0.01,
    )
    return standard._replace(**changes)


def test_loss_is_the_sum_of_the_paper() -> None:
    environment = Matching(Discrete(3), length=5)
    policy = policy_of(environment)
    batch = older(collected(environment, policy))
    loss = vtrace_loss(policy, batch, coefficients(rho_clip=1.5, policy_rho_clip=1.2))
    with torch.no_grad():
        said = policy.evaluate(batch.observations, {}, batch.first, action_masks=None)
        values = said.values
        log_probs = torch.stack(
            [
                torch.log_softmax(
                    policy.evaluate(
                        {"cue": batch.observations["cue"][t]}, {}, batch.first[t], action_masks=None
                    ).distribution.log_probs,
                    -1,
                )
                .gather(-1, batch.actions[t].unsqueeze(-1))
                .squeeze(-1)
                for t in range(len(batch.rewards))
            ]
        )
        entropies = said.distribution.entropy()[:-1]
    ratios = (log_probs - batch.log_probs).exp()
    expected = 0.0
    for b in range(batch.rewards.shape[1]):
        later = 0.0
        for t in reversed(range(len(batch.rewards))):
            ended = bool(batch.terminated[t, b] or batch.truncated[t, b])
            after = 0.0 if batch.terminated[t, b] else values[t + 1, b].item()
            carried = 0.0 if ended else later
            ratio = ratios[t, b].item()
            reward, own = batch.rewards[t, b].item(), values[t, b].item()
            correction = min(1.5, ratio) * (reward + 0.9 * after - own) + 0.9 * min(1.0, ratio) * carried
            advantage = min(1.2, ratio) * (reward + 0.9 * (after + (0.0 if batch.terminated[t, b] else carried)) - own)
            later = correction
            if batch.valid[t, b]:
                expected += -log_probs[t, b].item() * advantage + 0.5 * 0.5 * correction**2
                expected -= 0.01 * entropies[t, b].item()
    assert loss.total.item() == pytest.approx(expected, rel=1e-4)
    assert loss.valid == batch.valid.sum()


def test_appo_clips_beside_the_old_policy_and_caps_what_it_believes_less() -> None:
    environment = Matching(Discrete(3))
    policy = policy_of(environment)
    batch = collected(environment, policy)
    log_probs = batch.log_probs
    # mu = .9 and old = pi = .3: r is min(mu / old, 2) * pi / mu = .6667, outside 1 +- .2.
    batch = changed(batch, log_probs=log_probs + math.log(3.0))
    capped = vtrace_loss(policy, batch, coefficients(clip_ratio=0.2), old_log_probs=log_probs)
    assert capped.sums["clip_fraction"] == batch.valid.sum()
    within = vtrace_loss(policy, batch, coefficients(clip_ratio=0.4), old_log_probs=log_probs)
    assert within.sums["clip_fraction"] == 0
    # A cap that does not bite leaves the ratio to the old policy, here 1.
    near = changed(batch, log_probs=log_probs + math.log(1.9))
    assert vtrace_loss(policy, near, coefficients(clip_ratio=1e-3), old_log_probs=log_probs).sums["clip_fraction"] == 0


def test_weights_by_lag_are_a_weighted_mean() -> None:
    environment = Matching(Discrete(3))
    policy = policy_of(environment)
    batch = collected(environment, policy)
    ages = torch.arange(batch.rewards.shape[1]) % 3
    batch = changed(replace(batch, version=5), versions=torch.full_like(batch.versions, 5) - ages)
    found, expected, weights = vtrace_loss(policy, batch, coefficients(lag_exponent=1.0)), 0.0, 0.0
    for age in range(3):
        part = columns(batch, (ages == age).nonzero().flatten().tolist())
        loss = vtrace_loss(policy, part, coefficients())
        expected += loss.total.item() / (1 + age)
        weights += loss.valid.item() / (1 + age)
    assert found.total.item() == pytest.approx(expected, rel=1e-4)
    assert [found.valid.item(), found.weight.item()] == pytest.approx([batch.valid.sum().item(), weights])


@pytest.mark.parametrize("rule", RULES)
def test_weights_by_lag_change_nothing_without_lag(rule: str) -> None:
    environment = Matching(Discrete(3))
    results = []
    for exponent in (0.0, 1.0):
        policy, algorithm = learner(environment, lag_exponent=exponent, **RULES[rule])
        batch = collected(environment, policy)
        batch = changed(replace(batch, version=3), versions=torch.full_like(batch.versions, 3))
        results.append((finish(algorithm.update(batch)), parameters(policy)))
    assert results[0][0] == results[1][0]
    assert same(results[0][1], results[1][1])


def test_appo_is_a_loop_over_three_policies() -> None:
    environment = Matching(Discrete(3), length=5)
    policy = policy_of(environment)
    batch = older(collected(environment, policy))
    old = batch.log_probs + 0.3 * torch.randn(batch.log_probs.shape, generator=torch.Generator().manual_seed(5))
    loss = vtrace_loss(policy, batch, coefficients(clip_ratio=0.2, value=0.0, entropy=0.0), old_log_probs=old)
    with torch.no_grad():
        said, now = evaluated(policy, batch)
        estimated = returns.vtrace(
            old - batch.log_probs,
            batch.rewards,
            said.values[:-1],
            said.values[1:],
            batch.terminated,
            batch.truncated,
            gamma=0.9,
        )
    expected = 0.0
    for t, b in batch.valid.nonzero().tolist():
        behaviour, before, probability = (array[t, b].exp().item() for array in (batch.log_probs, old, now))
        ratio = min(behaviour / before, 2.0) * probability / behaviour
        advantage = estimated.advantages[t, b].item()
        expected -= min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
    assert loss.total.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("returns_as", "rounding"), [(True, 1e-3), ("pop_art", 1e-3), ("targets_only", 0.3)])
def test_normalized_returns_are_those_of_ppo(returns_as: Any, rounding: float) -> None:
    # Where the scale of values moves with that of targets, PPO's targets have values on the scale of acting.
    environment = Matching(Discrete(3), scale=1000.0)
    normalize = NormalizeSpec(returns=returns_as)
    policy, algorithm = learner(environment, normalize=normalize, learning_rate=0.0)
    other = policy_of(environment, normalize=normalize)
    settings = {"kind": "ppo", "epochs": 1, "minibatches": 1, "gae_lambda": 1.0, "learning_rate": 0.0}
    rival = ppo.build(ppo.Settings.model_validate(settings), other, context())
    for _ in range(3):
        batch = collected(environment, policy)
        found, expected = (finish(rule.update(batch)) for rule in (algorithm, rival))
        assert found["value_loss"] == pytest.approx(expected["value_loss"], rel=rounding)
        for name, array in parameters(other).items():
            torch.testing.assert_close(parameters(policy)[name], array, rtol=rounding, atol=1e-4)
    # Values and advantages are on one scale.
    assert abs(found["policy_loss"]) < 5.0


@pytest.mark.parametrize("returns_as", [True, "pop_art"])
def test_normalizers_take_in_all_minibatches(returns_as: Any) -> None:
    environment = Matching(Discrete(3))
    normalize = NormalizeSpec(observations=True, returns=returns_as)
    found = []
    for minibatches in (1, 2):
        policy, algorithm = learner(environment, normalize=normalize, learning_rate=0.0, minibatches=minibatches)
        batch = collected(environment, policy)
        for _ in range(2):
            finish(algorithm.update(batch))
        found.append(parameters(policy))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_old_policy_stays_for_so_many_updates() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, learning_rate=1e-2, **APPO | {"old_policy_updates": 3})
    batch = collected(environment, policy)
    seen = []
    for version in range(5):
        now = torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])
        finish(algorithm.update(replace(batch, version=version)))
        seen.append(torch.equal(algorithm.state()["old_policy"], now))
    assert seen == [True, False, False, True, False]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
def test_invalid_records_count_in_nothing(rule: str, recurrent: dict[str, Any] | None) -> None:
    environment = Matching(Discrete(3))
    results = []
    for rubbish in (False, True):
        policy, algorithm = learner(environment, recurrent=recurrent, normalize=NORMALIZED, **RULES[rule])
        batch = collected(environment, policy)
        assert not batch.valid.all()
        if rubbish:
            batch.actions[~batch.valid] = 2
            batch.log_probs[~batch.valid] = -1e4
            batch.rewards[~batch.valid] = 1e4
        metrics = finish(algorithm.update(batch))
        results.append((metrics, parameters(policy)))
    assert results[0][0] == results[1][0]
    assert same(results[0][1], results[1][1])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("actions", [Discrete(3), MultiDiscrete((3, 3)), Continuous(2)], ids=str)
@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
def test_two_trainers_learn_what_one_learns_from_both_batches(
    rule: str, actions: Any, recurrent: dict[str, Any] | None
) -> None:
    environment = Matching(actions, num_environments=16)
    settings: dict[str, Any] = {"recurrent": recurrent, "normalize": NORMALIZED, "learning_rate": 1e-2, **RULES[rule]}
    whole, alone = learner(environment, **settings)
    batch = older(collected(environment, whole), 0.2)
    batch.valid[:, :3] = False  # the trainers' valid counts differ
    expected = finish(alone.update(batch))
    shared = SharedSum(2)
    pairs = [learner(environment, context(seed, shared), **settings) for seed in (0, 1)]
    parts = [columns(batch, slice(8)), columns(batch, slice(8, 16))]
    metrics = finish_together([pair[1].update(part) for pair, part in zip(pairs, parts, strict=True)])
    assert metrics[0] == metrics[1]
    assert same(parameters(pairs[0][0]), parameters(pairs[1][0]))
    del expected["ratio_max_deviation_first"], metrics[0]["ratio_max_deviation_first"]
    assert metrics[0] == pytest.approx(expected, rel=1e-3, abs=1e-5)
    torch.testing.assert_close(parameters(pairs[0][0]), parameters(whole), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rule", RULES)
def test_every_fragment_is_in_one_minibatch_of_an_update(rule: str) -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, learning_rate=0.0, minibatches=4, recurrent=LSTM, **RULES[rule])
    batch = older(collected(environment, policy))
    metrics = finish(algorithm.update(batch))
    other, whole = learner(environment, learning_rate=0.0, recurrent=LSTM, **RULES[rule])
    expected = finish(whole.update(batch))
    for name in ("loss", "value_loss", "entropy", "approx_kl", "rho_mean"):
        assert metrics[name] == pytest.approx(expected[name], rel=1e-4), name


@pytest.mark.parametrize("rule", RULES)
def test_updates_with_equal_seed_and_version_are_equal_bit_for_bit(rule: str) -> None:
    environment = Matching(Discrete(3))
    results = []
    for seed, version in ((0, 3), (0, 3), (1, 3), (0, 4)):
        policy, algorithm = learner(environment, context(seed), minibatches=4, **RULES[rule])
        finish(algorithm.update(replace(collected(environment, policy), version=version)))
        results.append(parameters(policy))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])
    assert not same(results[0], results[3])


@pytest.mark.parametrize("rule", RULES)
def test_restored_state_continues_bit_for_bit(rule: str) -> None:
    environment = Matching(Discrete(3))
    more = {"recurrent": GRU, "normalize": NORMALIZED, **RULES[rule]}
    more |= {"old_policy_updates": 3} if rule == "appo" else {}
    policy, algorithm = learner(environment, **more)
    batch = older(collected(environment, policy))
    finish(algorithm.update(replace(batch, version=0)))
    saved = copy.deepcopy((policy.state_dict(), dict(algorithm.state())))
    expected = finish(algorithm.update(replace(batch, version=1)))
    resumed, other = learner(environment, **more)
    resumed.load_state_dict(saved[0])
    other.load_state(saved[1])
    assert finish(other.update(replace(batch, version=1))) == expected
    assert same(parameters(policy), parameters(resumed))


def test_state_without_the_old_policy_is_refused() -> None:
    _, plain = learner(Matching(Discrete(3)))
    _, appo = learner(Matching(Discrete(3)), **APPO)
    with pytest.raises(ValueError, match="old_policy"):
        appo.load_state(plain.state())


@pytest.mark.parametrize("recurrent", [LSTM, GRU], ids=["lstm", "gru"])
def test_burn_in_gives_the_gradients_of_a_state_that_is_a_constant(recurrent: dict[str, Any]) -> None:
    environment = Matching(Discrete(3), length=50)
    policy, algorithm = learner(environment, recurrent=recurrent)
    batch = collected(environment, policy, burn_in=4, batches=2)
    state = policy.warm_up(
        {key: array[:4] for key, array in batch.observations.items()}, batch.state, batch.first[:4], action_masks=None
    )
    finish(algorithm.update(batch))
    warmed = gradients(policy)
    other, cold = learner(environment, recurrent=recurrent)
    finish(cold.update(cut(batch, 4, dict(state))))
    for name, gradient in gradients(other).items():
        torch.testing.assert_close(gradient, warmed[name], rtol=1e-4, atol=1e-7)


def test_normalizers_take_in_a_batch_at_its_first_use_only() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize=NORMALIZED, learning_rate=0.0)
    batch = collected(environment, policy)
    finish(algorithm.update(batch))
    before = parameters(policy)
    finish(algorithm.update(replace(batch, is_first_use=False)))
    assert same(before, parameters(policy))


def test_pop_art_keeps_values_while_the_scale_moves() -> None:
    environment = Matching(Discrete(3), scale=20.0)
    policy, algorithm = learner(environment, normalize=NormalizeSpec(returns="pop_art"), learning_rate=0.0)
    batch = collected(environment, policy)

    def values() -> Tensor:
        with torch.no_grad():
            said = policy.evaluate(batch.observations, {}, batch.first, action_masks=None)
            return policy.denormalize_values(said.values)

    before, head = values(), parameters(policy)
    finish(algorithm.update(batch))
    torch.testing.assert_close(values(), before, rtol=1e-3, atol=1e-4)
    assert not same(head, parameters(policy))


def test_batch_without_valid_records_changes_no_parameter() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize=NORMALIZED)
    batch = collected(environment, policy)
    # Adam's moments would move on.
    finish(algorithm.update(batch))
    before = parameters(policy)
    metrics = finish(algorithm.update(changed(batch, valid=torch.zeros_like(batch.valid))))
    assert same(before, parameters(policy))
    assert all(math.isfinite(number) for number in metrics.values())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("where", ["rewards", "log_probs"])
def test_divergence_is_named_and_leaves_everything_as_before_the_update(rule: str, where: str) -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, minibatches=2, normalize=NORMALIZED, **RULES[rule])
    batch = collected(environment, policy)
    finish(algorithm.update(replace(batch, version=0)))
    t, b = batch.valid.nonzero()[-1].tolist()
    getattr(batch, where)[t, b] = float("nan")
    before, state = parameters(policy), copy.deepcopy(dict(algorithm.state()))
    with pytest.raises(DivergedError, match="the (loss|gradient norm) is nan"):
        finish(algorithm.update(replace(batch, version=1)))
    assert same(before, parameters(policy))
    assert same(state, dict(algorithm.state()))


def test_bfloat16_keeps_parameters_and_losses_float32() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, context(autocast=torch.bfloat16), recurrent=LSTM, **APPO)
    metrics = finish(algorithm.update(collected(environment, policy)))
    assert all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    assert all(math.isfinite(number) for number in metrics.values())


@pytest.mark.parametrize(
    ("settings", "batch", "words"),
    [
        ({"minibatches": 3}, {"fragments": 8, "fragment_steps": 16}, "does not divide a trainer's 8 fragments"),
        ({}, {"fragments": 8, "fragment_steps": 16, "chunk_steps": 4}, "V-trace sums over whole fragments; leave it"),
    ],
)
def test_batches_that_do_not_fit_are_refused(settings: dict[str, Any], batch: dict[str, Any], words: str) -> None:
    rule = vtrace.Settings.model_validate({"kind": "vtrace", **settings})
    with pytest.raises(UserError, match=words):
        rule.check(BatchSpec.model_validate(batch), mlp.Settings.model_validate({"kind": "mlp"}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rate": -1.0}, "must not be negative"),
        ({"clip_ratio": -0.1}, "must not be negative"),
        ({"c_clip": 2.0}, "at most rho_clip, which is 1"),
        ({"old_policy_updates": 4}, "set clip_ratio, or leave it out"),
        ({"clip_ratio": 0.4}, "it clips nothing; set minibatches or old_policy_updates to 2 or more"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        vtrace.Settings.model_validate({"kind": "vtrace", **settings})
