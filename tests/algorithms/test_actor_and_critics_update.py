"""What one update of an actor and critics promises, whichever rule makes it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch

from srlhpc.algorithms.algorithm import DivergedError
from srlhpc.algorithms.transitions import standard_normal
from tests.algorithms.actor_and_critics import (
    MOVING,
    RULES,
    SAC,
    TD3,
    Rule,
    columns,
    everything,
    flat,
    learner,
    same,
    share_noise,
    use_noise,
)
from tests.algorithms.collecting import OwnSum, SharedSum, changed, context, finish, finish_together, updated
from tests.algorithms.transitions import WALKER, windows
from tests.policies.making import kind


@RULES
def test_feedback_is_the_mean_absolute_error_of_each_window(rule: Rule) -> None:
    batch = windows(records=3, columns=4)
    batch.valid[:, 2] = False
    feedback = updated(learner(rule)[1].update(batch)).feedback
    assert feedback is not None
    assert feedback.shape == (4,)
    for column in range(4):
        alone = torch.zeros_like(batch.valid)
        alone[:, column] = batch.valid[:, column]
        metrics = finish(learner(rule)[1].update(changed(batch, valid=alone)))
        assert feedback[column].item() == pytest.approx(metrics["td_error"], rel=1e-5)
    assert feedback[2] == 0.0


@RULES
def test_weights_scale_the_error_of_their_window_in_the_critics_alone(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = windows(columns=8)
    batch.valid[:] = True
    # Noise is drawn for 8 windows; one window gets that of the first.
    use_noise(monkeypatch, lambda *args: standard_normal(*args[:-2], 8, args[-1])[..., : args[-2], :])
    gradients = []
    for used in (
        replace(batch, weights=torch.tensor([1.0] + [0.0] * 7)),
        columns(batch, slice(1)),
        batch,
    ):
        trained, algorithm = learner(rule)
        updated(algorithm.update(used))
        parts = (trained.critics, trained.actor)
        gradients.append([[copy.deepcopy(p.grad) for p in part.parameters()] for part in parts])
    weighted, alone, unweighted = gradients
    for one, other in zip(weighted[0], alone[0], strict=True):
        torch.testing.assert_close(8 * one, other, rtol=1e-4, atol=1e-5)
    for one, other in zip(weighted[1], unweighted[1], strict=True):
        assert torch.equal(one, other)


@RULES
@pytest.mark.parametrize("records", [1, 3])
def test_two_trainers_learn_what_one_learns_from_both_batches(
    rule: Rule, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_noise(monkeypatch, columns=32)
    batch = windows(records=records, columns=32, weights=torch.rand(32))
    batch.valid[:, :5] = False  # the trainers' valid counts differ
    whole, alone = learner(rule)
    expected = updated(alone.update(batch))

    reducer = SharedSum(2)
    pairs = [learner(rule, context(seed, reducer)) for seed in (0, 1)]
    parts = [columns(batch, slice(16)), columns(batch, slice(16, 32))]
    metrics = finish_together([pair[1].update(part) for pair, part in zip(pairs, parts, strict=True)])
    assert metrics[0] == metrics[1]
    assert same(everything(*pairs[0]), everything(*pairs[1]))
    assert metrics[0] == pytest.approx(expected.metrics, rel=1e-4, abs=1e-6)
    mine, theirs = everything(*pairs[0]), everything(whole, alone)
    for name, tensor in theirs.items():
        torch.testing.assert_close(mine[name], tensor, rtol=1e-3, atol=1e-4, msg=name)
    assert len(reducer.sizes) == 1


@RULES
def test_collective_calls_do_not_depend_on_the_data(rule: Rule) -> None:
    sizes = []
    for valid in (True, False):
        reducer = SharedSum(2)
        batch = windows()
        used = batch if valid else changed(batch, valid=torch.zeros_like(batch.valid))
        finish_together([learner(rule, context(seed, reducer))[1].update(used) for seed in (0, 1)])
        sizes.append(reducer.sizes)
    assert len(sizes[0]) == 1
    assert sizes[0] == sizes[1]


@RULES
def test_updates_with_equal_seed_and_version_are_equal_bit_for_bit(rule: Rule) -> None:
    results = []
    for seed, version in ((0, 3), (0, 3), (1, 3), (0, 4)):
        trained, algorithm = learner(rule, context(seed))
        finish(algorithm.update(windows(version=version)))
        results.append(everything(trained, algorithm))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])
    assert not same(results[0], results[3])


@pytest.mark.parametrize(
    "rule", [SAC, SAC | {"temperature": 0.1}, TD3, {"kind": "td3"}], ids=["sac", "fixed", "td3", "delayed"]
)
def test_restored_state_continues_bit_for_bit(rule: Rule) -> None:
    trained, algorithm = learner(rule)
    for version in range(3):
        finish(algorithm.update(windows(seed=version, version=version)))
    acting = copy.deepcopy(trained.actor.state_dict())
    saved = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    resumed, other = learner(rule)
    resumed.actor.load_state_dict(acting)
    other.load_state(saved)
    for version in range(3, 5):
        batch = windows(seed=version, version=version)
        assert finish(other.update(batch)) == finish(algorithm.update(batch))
    assert same(everything(trained, algorithm), everything(resumed, other))


@MOVING
def test_state_of_another_network_is_refused(rule: Rule) -> None:
    other = learner(rule, agents=kind(actions=WALKER.actions))[1]
    with pytest.raises(ValueError, match=f"state of {rule['kind']} has .* expected"):
        learner(rule)[1].load_state(other.state())


@MOVING
def test_targets_follow_by_the_polyak_share(rule: Rule) -> None:
    trained, algorithm = learner(rule, polyak=0.25, critic_learning_rate=0.1)
    before = algorithm.state()["targets.parameters"].clone()
    torch.testing.assert_close(before, flat(trained.critics))
    finish(algorithm.update(windows()))
    now = flat(trained.critics)
    torch.testing.assert_close(algorithm.state()["targets.parameters"], before + 0.25 * (now - before))


@MOVING
def test_all_learn_from_the_parameters_before_the_update(rule: Rule) -> None:
    # critics that have just moved far would give the actor another gradient
    gradients = []
    for rate in (0.0, 10.0):
        trained, algorithm = learner(rule, critic_learning_rate=rate)
        finish(algorithm.update(windows()))
        gradients.append([p.grad for p in trained.actor.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))
    assert all(gradient is not None and gradient.any() for gradient in gradients[0])


@MOVING
def test_first_step_of_adam_moves_each_part_by_its_own_learning_rate(rule: Rule) -> None:
    trained, algorithm = learner(rule, adam_epsilon=1e-12, critic_learning_rate=0.125, actor_learning_rate=0.25)
    before = everything(trained, algorithm)
    finish(algorithm.update(windows()))
    after = everything(trained, algorithm)
    moved = {name: (after[name] - before[name]).abs().max().item() for name in after}
    assert moved["network.critics.heads.0.linear.bias"] == pytest.approx(0.125, rel=1e-3)
    assert moved["network.actor.head.bias"] == pytest.approx(0.25, rel=1e-3)


@RULES
@pytest.mark.parametrize("field", ["rewards", "obs.body", "actions"])
def test_divergence_is_named_and_leaves_everything_as_before_the_update(rule: Rule, field: str) -> None:
    trained, algorithm = learner(rule)
    finish(algorithm.update(windows()))
    batch = windows(version=1)
    batch.valid[0, 0] = True
    batch.fields[field][0, 0] = float("nan")
    before = everything(trained, algorithm)
    with pytest.raises(DivergedError, match="the (critic loss|.* gradient norm) is nan"):
        finish(algorithm.update(batch))
    assert same(before, everything(trained, algorithm))


@RULES
@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), 1e9])
def test_invalid_records_count_in_nothing(rule: Rule, rubbish: float) -> None:
    results = []
    for number in (0.0, rubbish):
        trained, algorithm = learner(rule)
        batch = windows(records=2)
        assert not batch.valid.all()
        for field in ("rewards", "actions"):
            batch.fields[field][~batch.valid] = number
        batch.terminated[~batch.valid] = number == 0.0
        update = updated(algorithm.update(batch))
        assert update.feedback is not None
        results.append((update.metrics, update.feedback.tolist(), everything(trained, algorithm)))
    assert results[0][:2] == results[1][:2]
    assert same(results[0][2], results[1][2])


@RULES
def test_batch_without_valid_records_changes_nothing(rule: Rule) -> None:
    trained, algorithm = learner(rule)
    finish(algorithm.update(windows()))
    before = everything(trained, algorithm)
    batch = windows(version=1)
    metrics = finish(algorithm.update(changed(batch, valid=torch.zeros_like(batch.valid))))
    assert same(before, everything(trained, algorithm))
    assert all(math.isfinite(number) for number in metrics.values())


@MOVING
def test_gradients_are_clipped_each_by_its_own_norm(rule: Rule) -> None:
    trained, algorithm = learner(rule, max_gradient_norm=1e-4)
    metrics = finish(algorithm.update(windows()))
    assert min(metrics["critic_gradient_norm"], metrics["actor_gradient_norm"]) > 1e-3
    state = algorithm.state()
    for part in ("actor", "critics"):
        assert 10 * state[f"{part}.adam.exp_avg"].norm().item() == pytest.approx(1e-4, rel=1e-3)


@MOVING
def test_schedules_follow_the_trained_steps(rule: Rule) -> None:
    _, algorithm = learner(rule, actor_learning_rate={"start": 1e-3, "end": 0.0, "steps": 1000})
    updates = [finish(algorithm.update(windows(version=v, steps=steps))) for v, steps in enumerate((0, 500, 2000))]
    rates = [metrics["actor_learning_rate"] for metrics in updates]
    assert rates == pytest.approx([1e-3, 5e-4, 0.0])


@RULES
def test_bfloat16_keeps_parameters_and_losses_float32(rule: Rule) -> None:
    trained, algorithm = learner(rule, context(autocast=torch.bfloat16))
    generator = algorithm.update(windows())
    for _ in generator:
        assert not torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()
    metrics = finish(algorithm.update(windows(version=1)))
    assert all(math.isfinite(number) for number in metrics.values())
    assert {tensor.dtype for tensor in trained.parameters()} == {torch.float32}


@RULES
def test_update_yields_between_its_parts(rule: Rule) -> None:
    _, algorithm = learner(rule, context(0, OwnSum()))
    assert sum(1 for _ in algorithm.update(windows())) >= 1
