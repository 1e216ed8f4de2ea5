"""What one PPO update promises beside learning."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms import ppo
from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError
from srlhpc.environment import Continuous, Discrete
from srlhpc.errors import UserError
from srlhpc.policies import mlp
from srlhpc.policies.policy import Policy
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import Collector, OwnSum, SharedSum, changed, context, finish, finish_together
from tests.algorithms.tiny_environments import Matching

LSTM = {"kind": "lstm", "size": 8}
GRU = {"kind": "gru", "size": 8}


def learner(
    environment: Matching,
    using: Context | None = None,
    *,
    recurrent: dict[str, Any] | None = None,
    normalize: NormalizeSpec | None = None,
    **settings: Any,
) -> tuple[Policy, Algorithm]:
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "recurrent": recurrent})
    policy = mlp.build(network, environment.spaces.kinds[0], normalize or NormalizeSpec())
    using = using or context()
    policy.to(using.device)
    algorithm = ppo.build(ppo.Settings.model_validate({"kind": "ppo", **settings}), policy, using)
    return policy, algorithm


def collected(environment: Matching, policy: Policy, *, burn_in: int = 0, batches: int = 1, chunks: int = 1) -> Batch:
    collector = Collector(environment, policy, steps=12, seed=2, burn_in=burn_in, chunks=chunks)
    for _ in range(batches - 1):
        collector.batch()
    return collector.batch()


def parameters(policy: Policy) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in policy.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one | other)


def cut(batch: Batch, records: int, state: dict[str, Tensor]) -> Batch:
    """The batch without its first records, which start from `state`."""
    fields = {
        name: tensor if "state." in name else tensor[records:]
        for name, tensor in batch.fields.items()
        if not name.startswith("chunk_state.")
    }
    return replace(batch, fields=fields | {f"state.{name}": array for name, array in state.items()}, burn_in_steps=0)


def gradients(policy: Policy) -> dict[str, Tensor]:
    return {name: parameter.grad.clone() for name, parameter in policy.named_parameters() if parameter.grad is not None}


def columns(batch: Batch, part: slice | list[int]) -> Batch:
    per_fragment = ("state.", "final_state.")
    taken = {name: t[part] if name.startswith(per_fragment) else t[:, part] for name, t in batch.fields.items()}
    return replace(batch, fields=taken)


@pytest.mark.parametrize("recurrent", [None, LSTM, GRU], ids=["none", "lstm", "gru"])
@pytest.mark.parametrize("actions", [Discrete(5), Continuous(2)], ids=["discrete", "continuous"])
def test_ratio_is_one_within_rounding_in_the_first_minibatch(
    recurrent: dict[str, Any] | None, actions: Discrete | Continuous
) -> None:
    environment = Matching(actions, length=5)
    policy, algorithm = learner(environment, recurrent=recurrent, learning_rate=1e-2)
    collector = Collector(environment, policy, steps=12, seed=2)
    for _ in range(5):
        batch = collector.batch()
        assert batch.first[1:-1].any()
        assert finish(algorithm.update(batch))["ratio_max_deviation_first"] < 1e-5


@pytest.mark.parametrize("minibatches", [1, 4])
def test_ratio_is_one_in_the_first_minibatch_of_chunks(minibatches: int) -> None:
    environment = Matching(Discrete(5), length=5)
    policy, algorithm = learner(environment, recurrent=LSTM, learning_rate=1e-2, minibatches=minibatches)
    collector = Collector(environment, policy, steps=12, seed=2, chunks=4)
    for _ in range(3):
        batch = collector.batch()
        assert batch.first[1:-1].any()
        assert finish(algorithm.update(batch))["ratio_max_deviation_first"] < 1e-5


def test_gradients_end_where_chunks_do() -> None:
    environment = Matching(Discrete(3), length=50)
    norms = []
    for chunks in (1, 4):
        policy, algorithm = learner(environment, recurrent=LSTM, epochs=1, minibatches=1)
        batch = collected(environment, policy, batches=2, chunks=chunks)
        batch.valid[:9] = False
        weight = policy.get_parameter("memory.weight_hh")
        finish(algorithm.update(batch))
        assert weight.grad is not None
        norms.append(weight.grad.clone())
        if chunks == 4:
            last_chunk = cut(batch, 9, {name: states[-1] for name, states in batch.chunk_states.items()})
    policy, algorithm = learner(environment, recurrent=LSTM, epochs=1, minibatches=1)
    finish(algorithm.update(last_chunk))
    last = policy.get_parameter("memory.weight_hh").grad
    assert last is not None
    torch.testing.assert_close(norms[1], last)
    assert not torch.allclose(norms[0], last, rtol=1e-3)


def test_chunks_without_valid_records_are_not_computed_and_change_nothing() -> None:
    environment = Matching(Discrete(3), length=50)
    results, widths = [], []
    for missing in ([], [3, 5]):
        policy, algorithm = learner(environment, recurrent=LSTM, epochs=1, minibatches=1)
        batch = collected(environment, policy, batches=2, chunks=4)
        batch.valid[:, [3, 5]] = False
        kept = [column for column in range(16) if column not in missing]
        if missing:
            batch = columns(batch, kept)
        policy.get_submodule("memory").register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0].shape[1]))
        finish(algorithm.update(batch))
        results.append(parameters(policy))
    assert widths == [4 * 14, 4 * 14]
    assert same(results[0], results[1])


def test_losses_equal_the_sums_of_the_paper() -> None:
    environment = Matching(Discrete(3))
    settings = {"epochs": 1, "minibatches": 1, "gamma": 0.5, "gae_lambda": 0.5, "clip_ratio": 0.1}
    policy, algorithm = learner(environment, entropy_coefficient=0.25, **settings)
    batch = collected(environment, policy)
    batch.fields["log_probs"] += 0.3 * torch.randn(batch.log_probs.shape)
    batch.outputs["value"] += torch.randn(batch.log_probs.shape)
    rows = {key: array[:-1] for key, array in batch.observations.items()}
    now = policy.evaluate(rows, {}, batch.first[:-1], action_masks=None)
    last = policy.evaluate(
        {key: array[-1] for key, array in batch.observations.items()}, {}, batch.first[-1], action_masks=None
    )
    values = torch.cat([batch.outputs["value"], last.values[None]]).detach()
    advantages = torch.zeros(batch.rewards.shape)
    for b in range(advantages.shape[1]):
        for t in range(len(advantages)):
            for later in range(t, len(advantages)):
                bootstrap = 0.0 if batch.terminated[later, b] else 0.5 * values[later + 1, b]
                delta = batch.rewards[later, b] + bootstrap - values[later, b]
                advantages[t, b] += 0.25 ** (later - t) * delta
                if batch.terminated[later, b]:
                    break
    valid = batch.valid
    targets = advantages + values[:-1]
    normalized = (advantages - advantages[valid].mean()) / advantages[valid].std(correction=0)
    ratios = (now.distribution.log_prob(batch.actions) - batch.log_probs).exp()
    surrogate = torch.min(ratios * normalized, ratios.clamp(0.9, 1.1) * normalized)[valid].mean()
    value_loss = 0.5 * (now.values - targets)[valid].square().mean()
    entropy = now.distribution.entropy()[valid].mean()
    metrics = finish(algorithm.update(batch))
    assert metrics["policy_loss"] == pytest.approx(-surrogate.item(), abs=1e-5)
    assert metrics["value_loss"] == pytest.approx(value_loss.item(), rel=1e-4)
    assert metrics["entropy"] == pytest.approx(entropy.item(), rel=1e-4)
    assert metrics["loss"] == pytest.approx((-surrogate + 0.5 * value_loss - 0.25 * entropy).item(), rel=1e-4)
    assert metrics["ratio_max_deviation_first"] == pytest.approx((ratios - 1)[valid].abs().max().item(), rel=1e-4)
    assert metrics["advantage_std"] == pytest.approx(advantages[valid].std(correction=0).item(), rel=1e-4)
    explained = 1 - (targets - values[:-1])[valid].var() / targets[valid].var()
    assert metrics["explained_variance"] == pytest.approx(explained.item(), abs=1e-4)


@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
def test_invalid_records_count_in_nothing(recurrent: dict[str, Any] | None) -> None:
    environment = Matching(Discrete(3))
    normalize = NormalizeSpec(observations=True, returns=True)
    results = []
    for rubbish in (False, True):
        policy, algorithm = learner(environment, recurrent=recurrent, normalize=normalize)
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


def test_normalizers_take_in_a_batch_at_its_first_use_only() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize=NormalizeSpec(observations=True, returns=True))
    counts = []
    for is_first_use in (True, False, True):
        batch = collected(environment, policy)
        batch.is_first_use = is_first_use
        finish(algorithm.update(batch))
        counts.append({name: tensor.clone() for name, tensor in policy.state_dict().items() if "count" in name})
    assert counts[0]
    assert same(counts[0], counts[1])
    assert not same(counts[1], counts[2])


@pytest.mark.parametrize("returns", ["pop_art", "targets_only"])
def test_value_targets_are_scaled_by_statistics_that_hold_their_batch(
    returns: Literal["pop_art", "targets_only"],
) -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize=NormalizeSpec(returns=returns), epochs=1, learning_rate=0.0)
    batch = collected(environment, policy)
    batch.fields["rewards"] += 1000
    metrics = finish(algorithm.update(batch))
    mean, deviation = policy.denormalize_values(torch.tensor([0.0, 1.0])).tolist()
    assert mean == pytest.approx(metrics["return_target_mean"])
    values = metrics["value_mean"] if returns == "pop_art" else mean + (deviation - mean) * metrics["value_mean"]
    distance = (metrics["return_target_mean"] - values) / (deviation - mean)
    assert metrics["value_loss"] == pytest.approx(0.5 * (1 + distance**2), rel=0.05)


def test_scale_of_returns_is_that_of_before_the_update_after_divergence() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize=NormalizeSpec(returns="pop_art"))
    batch = collected(environment, policy)
    before = parameters(policy)
    t, b = batch.valid.nonzero()[-1].tolist()
    batch.log_probs[t, b] = float("nan")
    with pytest.raises(DivergedError):
        finish(algorithm.update(batch))
    assert same(before, parameters(policy))


def test_burn_in_is_never_trained_but_warms_the_state() -> None:
    environment = Matching(Discrete(3), length=50)
    results = []
    for change in ("nothing", "rewards", "observations"):
        policy, algorithm = learner(environment, recurrent=LSTM)
        batch = collected(environment, policy, burn_in=4, batches=2)
        assert batch.burn_in_steps == 4
        assert not batch.valid[:4].any()
        if change == "rewards":
            batch.rewards[:4] += 100
            batch.log_probs[:4] += 1
        if change == "observations":
            batch.observations["cue"][:4] += 1
        finish(algorithm.update(batch))
        results.append(parameters(policy))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])


@pytest.mark.parametrize("recurrent", [LSTM, GRU], ids=["lstm", "gru"])
@pytest.mark.parametrize("length", [50, 5], ids=["within an episode", "with a reset in it"])
def test_burn_in_gives_the_gradients_of_a_state_that_is_a_constant(recurrent: dict[str, Any], length: int) -> None:
    environment = Matching(Discrete(3), length=length)
    settings = {"recurrent": recurrent, "epochs": 1, "minibatches": 1, "max_gradient_norm": None}
    policy, algorithm = learner(environment, **settings)
    batch = collected(environment, policy, burn_in=4, batches=2)
    other, others = learner(environment, **settings)
    state = batch.state
    for t in range(4):
        seen = {key: array[t] for key, array in batch.observations.items()}
        state = other.act(seen, state, batch.first[t], action_masks=None, generator=None).state
    finish(algorithm.update(batch))
    finish(others.update(cut(batch, 4, state)))
    assert "memory.weight_hh" in gradients(policy)
    assert same(gradients(policy), gradients(other))
    assert same(parameters(policy), parameters(other))


def test_updates_with_equal_seed_and_version_are_equal_bit_for_bit() -> None:
    environment = Matching(Discrete(3))
    results = []
    for seed, version in ((0, 3), (0, 3), (1, 3), (0, 4)):
        policy, algorithm = learner(environment, context(seed))
        finish(algorithm.update(replace(collected(environment, policy), version=version)))
        results.append(parameters(policy))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])
    assert not same(results[0], results[3])


def test_restored_state_continues_bit_for_bit() -> None:
    environment = Matching(Discrete(3))
    normalize = NormalizeSpec(observations=True, returns=True)
    policy, algorithm = learner(environment, recurrent=GRU, normalize=normalize)
    batch = collected(environment, policy)
    finish(algorithm.update(batch))
    saved = copy.deepcopy((policy.state_dict(), dict(algorithm.state())))
    expected = finish(algorithm.update(batch))
    resumed, other = learner(environment, recurrent=GRU, normalize=normalize)
    resumed.load_state_dict(saved[0])
    other.load_state(saved[1])
    assert finish(other.update(batch)) == expected
    assert same(parameters(policy), parameters(resumed))


def test_state_of_another_network_is_refused() -> None:
    _, algorithm = learner(Matching(Discrete(3)))
    _, other = learner(Matching(Discrete(4)))
    with pytest.raises(ValueError, match="expected"):
        algorithm.load_state(other.state())


@pytest.mark.parametrize(
    ("recurrent", "chunks"), [(None, 1), (LSTM, 1), (LSTM, 3)], ids=["none", "lstm", "lstm in chunks"]
)
def test_two_trainers_learn_what_one_learns_from_both_batches(recurrent: dict[str, Any] | None, chunks: int) -> None:
    environment = Matching(Discrete(3), num_environments=16)
    normalize = NormalizeSpec(observations=True, returns=True)
    settings: dict[str, Any] = {"minibatches": 1, "recurrent": recurrent, "normalize": normalize, "learning_rate": 1e-2}
    whole, alone = learner(environment, **settings)
    batch = collected(environment, whole, chunks=chunks)
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


def test_early_stop_by_kl_is_the_same_on_all_trainers() -> None:
    environment = Matching(Discrete(3), num_environments=16)
    shared = SharedSum(2)
    settings = {"target_kl": 1e-3, "learning_rate": 1e-2, "epochs": 10}
    pairs = [learner(environment, context(seed, shared), **settings) for seed in (0, 1)]
    batch = collected(environment, pairs[0][0])
    parts = [columns(batch, slice(8)), columns(batch, slice(8, 16))]
    metrics = finish_together([pair[1].update(part) for pair, part in zip(pairs, parts, strict=True)])
    assert metrics[0] == metrics[1]
    assert 1 <= metrics[0]["epochs_done"] < 10
    assert metrics[0]["approx_kl"] > 1e-3


def test_no_early_stop_without_target() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, epochs=6, learning_rate=1e-2)
    assert finish(algorithm.update(collected(environment, policy)))["epochs_done"] == 6


def test_collective_calls_do_not_depend_on_the_data() -> None:
    environment = Matching(Discrete(3))
    sizes = []
    for valid in (True, False):
        reducer = OwnSum()
        policy, algorithm = learner(environment, context(0, reducer), normalize=NormalizeSpec(observations=True))
        batch = collected(environment, policy)
        finish(algorithm.update(batch if valid else changed(batch, valid=torch.zeros_like(batch.valid))))
        sizes.append(reducer.sizes)
    assert sizes[0] == sizes[1]


def test_batch_without_valid_records_changes_no_parameter() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize=NormalizeSpec(observations=True, returns=True))
    batch = collected(environment, policy)
    # Adam's moments would move on.
    finish(algorithm.update(batch))
    before = parameters(policy)
    metrics = finish(algorithm.update(changed(batch, valid=torch.zeros_like(batch.valid))))
    assert same(before, parameters(policy))
    assert all(math.isfinite(number) for number in metrics.values())


def test_update_yields_between_minibatches() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, epochs=2, minibatches=3)
    update = algorithm.update(collected(environment, policy))
    yields = sum(1 for _ in update)
    assert yields >= 2 * 3


@pytest.mark.parametrize("where", ["rewards", "log_probs"])
def test_divergence_is_named_and_leaves_everything_as_before_the_update(where: str) -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize_advantages=False, epochs=1)
    batch = collected(environment, policy)
    finish(algorithm.update(batch))
    t, b = batch.valid.nonzero()[-1].tolist()
    getattr(batch, where)[t, b] = float("nan")
    before, state = parameters(policy), copy.deepcopy(dict(algorithm.state()))
    with pytest.raises(DivergedError, match="the (loss|gradient norm) is nan"):
        finish(algorithm.update(batch))
    assert same(before, parameters(policy))
    assert same(state, dict(algorithm.state()))


def test_divergence_after_good_minibatches_goes_back_to_before_the_update() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize_advantages=False, epochs=1, minibatches=6)
    batch = collected(environment, policy)
    before = parameters(policy)
    for t, b in batch.valid.nonzero().tolist():
        broken = changed(batch, log_probs=batch.log_probs.clone())
        broken.log_probs[t, b] = float("nan")
        update, steps = algorithm.update(broken), 0
        try:
            for _ in update:
                steps += 1
        except DivergedError:
            assert same(before, parameters(policy))
            if steps > 3:
                return
    pytest.fail("no record was in a later minibatch")


def test_divergence_on_one_trainer_stops_both_with_equal_parameters() -> None:
    environment = Matching(Discrete(3), num_environments=16)
    shared = SharedSum(2)
    pairs = [learner(environment, context(seed, shared)) for seed in (0, 1)]
    batch = collected(environment, pairs[0][0])
    before = parameters(pairs[0][0])
    batch.rewards[0, 0] = float("inf")
    updates = [
        pair[1].update(part)
        for pair, part in zip(pairs, [columns(batch, slice(8)), columns(batch, slice(8, 16))], strict=True)
    ]
    diverged = 0
    while updates:
        for update in list(updates):
            try:
                next(update)
            except DivergedError:
                diverged += 1
                updates.remove(update)
    assert diverged == 2
    assert all(same(before, parameters(policy)) for policy, _ in pairs)


def test_schedules_follow_the_trained_steps() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, learning_rate={"start": 1e-3, "end": 0.0, "steps": 1000})
    batch = collected(environment, policy)
    rates = [finish(algorithm.update(replace(batch, steps=steps)))["learning_rate"] for steps in (0, 500, 2000)]
    assert rates == pytest.approx([1e-3, 5e-4, 0.0])


def test_gradients_are_clipped_to_the_maximum_norm() -> None:
    environment = Matching(Discrete(3))
    first_moments = []
    for maximum in (None, 1e-3):
        policy, algorithm = learner(environment, max_gradient_norm=maximum, epochs=1, minibatches=1)
        metrics = finish(algorithm.update(collected(environment, policy)))
        assert metrics["gradient_norm"] > 1e-2
        first_moments.append((metrics["gradient_norm"], 10 * algorithm.state()["adam.exp_avg"].norm().item()))
    assert first_moments[0][1] == pytest.approx(first_moments[0][0], rel=1e-4)
    assert first_moments[1][1] == pytest.approx(1e-3, rel=1e-3)


def test_first_step_of_adam_moves_every_parameter_by_the_learning_rate() -> None:
    environment = Matching(Discrete(3))
    settings = {"epochs": 1, "minibatches": 1, "max_gradient_norm": None, "adam_epsilon": 1e-12}
    policy, algorithm = learner(environment, learning_rate=0.125, **settings)
    before = parameters(policy)
    finish(algorithm.update(collected(environment, policy)))
    moved = (policy.state_dict()["policy_head.linear.bias"] - before["policy_head.linear.bias"]).abs()
    assert moved.tolist() == pytest.approx([0.125] * 3, rel=1e-3)


def test_normalizers_take_in_the_batch_after_the_last_epoch() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, normalize=NormalizeSpec(observations=True, returns=True))
    batch = collected(environment, policy)
    finish(algorithm.update(batch))
    seen = batch.observations["cue"][:-1][batch.valid].double()
    torch.testing.assert_close(policy.state_dict()["encoder.moments.mean"], seen.mean(0))
    assert policy.state_dict()["return_moments.count"].item() == batch.valid.sum().item()
    twice = finish(algorithm.update(batch))
    assert math.isfinite(twice["value_loss"])
    assert policy.state_dict()["encoder.moments.count"].item() == 2 * batch.valid.sum().item()


def test_normalized_returns_are_what_the_value_head_learns() -> None:
    environment = Matching(Discrete(3))
    normalize = NormalizeSpec(returns=True)
    policy, algorithm = learner(environment, normalize=normalize, learning_rate=0.0, gae_lambda=1.0)
    batch = collected(environment, policy)
    batch.fields["rewards"] *= 1000
    rows = {key: array[:-1] for key, array in batch.observations.items()}
    heads = policy.evaluate(rows, {}, batch.first[:-1], action_masks=None).values[batch.valid]
    metrics = [finish(algorithm.update(batch)) for _ in range(2)]
    assert metrics[0]["value_loss"] > 1e4
    # normalised targets have mean 0 and variance 1, and the untrained head does not depend on them
    assert metrics[1]["value_loss"] == pytest.approx(0.5 * (1 + heads.square().mean().item()), rel=0.3)


def test_value_clip_limits_what_the_value_loss_rewards() -> None:
    environment = Matching(Discrete(3))
    settings = {"epochs": 8, "learning_rate": 1e-2, "value_coefficient": 10.0, "max_gradient_norm": None}
    results = {}
    for clip in (None, 1e-3):
        policy, algorithm = learner(environment, value_clip=clip, **settings)
        results[clip] = finish(algorithm.update(collected(environment, policy)))["value_loss"]
    assert results[1e-3] > 2 * results[None]


def test_bfloat16_keeps_parameters_and_losses_float32() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, context(autocast=torch.bfloat16), recurrent=LSTM)
    metrics = finish(algorithm.update(collected(environment, policy)))
    assert all(math.isfinite(number) for number in metrics.values())
    assert {tensor.dtype for tensor in policy.parameters()} == {torch.float32}
    assert not torch.is_autocast_enabled("cpu")


def test_autocast_does_not_leak_out_of_a_paused_update() -> None:
    environment = Matching(Discrete(3))
    policy, algorithm = learner(environment, context(autocast=torch.bfloat16))
    for _ in algorithm.update(collected(environment, policy)):
        assert not torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()


def test_minibatches_must_divide_the_batch() -> None:
    settings = ppo.Settings(kind="ppo", minibatches=3)
    batch = BatchSpec(fragments=4, fragment_steps=6)
    settings.check(batch, mlp.Settings(kind="mlp"))
    with pytest.raises(UserError, match="minibatches is 3, .* batch of 4 fragments"):
        settings.check(batch, mlp.Settings.model_validate({"kind": "mlp", "recurrent": LSTM}))
    with pytest.raises(UserError, match="minibatches is 3, .* batch of 20 records"):
        settings.check(BatchSpec(fragments=4, fragment_steps=5), mlp.Settings(kind="mlp"))


def test_negative_learning_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        ppo.Settings.model_validate({"kind": "ppo", "learning_rate": {"start": 1.0, "end": -1.0, "steps": 5}})
