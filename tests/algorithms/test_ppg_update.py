"""What one update of phasic policy gradient promises beside learning."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms import ppg, ppo
from srlhpc.algorithms.algorithm import Batch
from srlhpc.algorithms.ppg.auxiliary_phase import METRICS
from srlhpc.environment import Continuous, Discrete, MultiDiscrete
from srlhpc.policies.phasic import PhasicEvaluated
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import OwnSum, SharedSum, changed, context, finish, finish_together
from tests.algorithms.phasic_learner import MEMORIES, NORMALIZED, collector, learnt, rule, same, trained_of, weights
from tests.algorithms.test_ppo_update import LSTM, columns, cut
from tests.algorithms.tiny_environments import Matching

NEVER = {"auxiliary_every_updates": 1000}


@pytest.mark.parametrize(
    ("settings", "returns"),
    [
        ({}, False),
        ({"epochs": 3, "minibatches": 4}, "pop_art"),
        ({"decoupled": True, "lag_exponent": 0.5}, True),
        ({"value_clip": 0.2}, "targets_only"),
    ],
    ids=str,
)
def test_update_without_an_auxiliary_phase_is_ppos_to_the_bit(settings: dict[str, Any], returns: Any) -> None:
    environment = Matching(Discrete(3))
    normalize = NormalizeSpec(observations=True, returns=returns)
    trained, other = (trained_of(environment, normalize=normalize) for _ in range(2))
    acting = collector(environment, other)
    first = acting.batch()
    phasic = rule(trained, first, **NEVER, **settings)
    names = ppo.Settings.model_fields.keys() - {"kind"}
    alike = ppg.Settings.model_validate({"kind": "ppg", "minibatches": 2, **settings}).model_dump(include=names)
    plain = ppo.build(ppo.Settings.model_validate({**alike, "kind": "ppo"}), other.policy, context())
    for batch in (first, acting.batch(), acting.batch()):
        found, expected = finish(phasic.update(batch)), finish(plain.update(batch))
        assert found == expected | {"auxiliary_phases": 0.0}
    assert same(trained.policy.state_dict(), other.policy.state_dict())
    state = phasic.state()
    assert same({name: state[f"policy.{name}"] for name in plain.state()}, dict(plain.state()))


@pytest.mark.parametrize("memory", [None, LSTM], ids=["none", "lstm"])
def test_value_moves_nothing_of_one_trunk_in_policy_phases(memory: dict[str, Any] | None) -> None:
    environment = Matching(Discrete(3))
    found = []
    for coefficient in (0.0, 1.0):
        trained = trained_of(environment, recurrent=memory, shared=True)
        batch = collector(environment, trained).batch()
        alone = {"value_coefficient": coefficient, "max_gradient_norm": None}
        finish(rule(trained, batch, **NEVER, **alone).update(batch))
        found.append(weights(trained))
    moved = {name.split(".")[1] for name in found[0] if not torch.equal(found[0][name], found[1][name])}
    assert moved == {"value_head"}


@pytest.mark.parametrize(
    ("memory", "actions"),
    [
        ("none", Discrete(3)),
        ("none", MultiDiscrete((2, 3))),
        ("lstm", Continuous(2)),
        ("chunks", Discrete(3)),
        ("burn-in", MultiDiscrete((2, 3))),
    ],
    ids=str,
)
def test_phase_without_steps_leaves_policy_and_values_where_they_were(memory: str, actions: Any) -> None:
    environment = Matching(actions, length=5)
    trained, batches = learnt(environment, MEMORIES[memory], NORMALIZED)
    algorithm = rule(trained, batches[0], auxiliary_learning_rate=0.0)
    finish(algorithm.update(batches[0]))
    metrics = finish(algorithm.update(batches[1]))
    assert metrics["auxiliary_phases"] == 1
    # Whatever was kept is seen by the same parameters, shuffled and warmed up.
    assert metrics["auxiliary_kl"] == pytest.approx(0.0, abs=1e-6)
    assert metrics["auxiliary_value_loss"] == pytest.approx(metrics["auxiliary_value_loss_before"], rel=1e-4)


def after_a_phase(*, shared: bool, kl_coefficient: float) -> tuple[dict[str, float], float, float]:
    """Metrics, the auxiliary value's mean loss and the policy's divergence from before, both over all kept records."""
    environment = Matching(Discrete(3), length=8)
    trained = trained_of(environment, shared=shared)
    # A policy that says something, so that other features would say something else.
    trained.policy.policy_head.linear.weight.data.mul_(200)
    acting = collector(environment, trained, steps=32)
    batches = [acting.batch() for _ in range(3)]
    settings = {"auxiliary_every_updates": 3, "auxiliary_epochs": 20, "auxiliary_learning_rate": 3e-3, "gamma": 0.9}
    # Policy phases move nothing, so what is before and after lies around the auxiliary phase.
    algorithm = rule(trained, batches[0], learning_rate=0.0, kl_coefficient=kl_coefficient, **settings)

    def said() -> list[PhasicEvaluated]:
        with torch.no_grad():
            return [
                trained.evaluate(
                    {key: array[:-1] for key, array in batch.observations.items()},
                    {},
                    batch.first[:-1],
                    action_masks=None,
                )
                for batch in batches
            ]

    before = said()
    for batch in batches:
        metrics = dict(finish(algorithm.update(batch)))
    after = said()
    targets = algorithm.state()["kept.targets"].chunk(3, dim=1)
    valid = torch.cat([batch.valid for batch in batches])
    errors = torch.cat([each.auxiliary_values - target for each, target in zip(after, targets, strict=True)])
    divergences = torch.cat([a.distribution.kl(b.distribution) for a, b in zip(before, after, strict=True)])
    return metrics, 0.5 * errors[valid].square().mean().item(), divergences[valid].mean().item()


@pytest.mark.parametrize("shared", [False, True], ids=["dual", "detach"])
def test_phase_teaches_the_value_while_the_policy_stays(shared: bool) -> None:
    metrics, loss, divergence = after_a_phase(shared=shared, kl_coefficient=1.0)
    assert loss < 0.6 * metrics["auxiliary_value_loss_before"]
    assert loss == pytest.approx(metrics["auxiliary_value_loss"], rel=0.2)
    assert 0.0 < divergence < 2e-4
    assert divergence == pytest.approx(metrics["auxiliary_kl"], rel=1.0)
    # It would not without its weight.
    assert after_a_phase(shared=shared, kl_coefficient=0.0)[2] > 10 * divergence


def test_burn_in_of_a_phase_only_warms_the_state() -> None:
    environment = Matching(Discrete(3), length=50)
    settings = {"learning_rate": 0.0, "auxiliary_every_updates": 1, "auxiliary_minibatches": 1, "adam_epsilon": 1e-2}
    trained, batches = learnt(environment, MEMORIES["burn-in"])
    batch, state = batches[1], dict(batches[1].state)
    for t in range(4):
        seen = {key: array[t] for key, array in batch.observations.items()}
        state = trained.policy.act(seen, state, batch.first[t], action_masks=None, generator=None).state
    other = trained_of(environment, recurrent=LSTM)
    for learns, part in ((trained, batch), (other, cut(batch, 4, state))):
        finish(rule(learns, part, **settings).update(part))
    assert not same(weights(trained), weights(trained_of(environment, recurrent=LSTM)))
    torch.testing.assert_close(weights(trained), weights(other), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("memory", [MEMORIES["none"], MEMORIES["chunks"]], ids=["none", "chunks"])
def test_invalid_records_count_in_nothing(memory: dict[str, Any]) -> None:
    environment = Matching(Discrete(3))
    results = []
    for rubbish in (False, True):
        trained, batches = learnt(environment, memory, NORMALIZED)
        algorithm = rule(trained, batches[0])
        for batch in batches:
            assert not batch.valid.all()
            if rubbish:
                batch.actions[~batch.valid] = 2
                batch.log_probs[~batch.valid] = -1e4
                batch.rewards[~batch.valid] = 1e4
            metrics = finish(algorithm.update(batch))
        assert metrics["auxiliary_phases"] == 2
        results.append((metrics, weights(trained)))
    assert results[0][0] == results[1][0]
    assert same(results[0][1], results[1][1])


def test_targets_are_scaled_by_the_statistics_of_the_phase() -> None:
    environment = Matching(Discrete(3), scale=1000.0)
    trained, batches = learnt(environment, normalize=NORMALIZED)
    algorithm = rule(trained, batches[0], learning_rate=0.0, auxiliary_learning_rate=0.0)
    for batch in batches[:2]:
        metrics = finish(algorithm.update(batch))
    errors = []
    for number, batch in enumerate(batches[:2]):
        seen = {key: array[:-1] for key, array in batch.observations.items()}
        said = trained.evaluate(seen, {}, batch.first[:-1], action_masks=None)
        targets = algorithm.state()["kept.targets"][:, number * 16 : (number + 1) * 16]
        assert targets[batch.valid].mean() > 100
        errors.append((said.auxiliary_values - trained.policy.normalize_values(targets))[batch.valid])
    expected = 0.5 * torch.cat(errors).square().mean().item()
    assert metrics["auxiliary_value_loss_before"] == pytest.approx(expected, rel=1e-4)


def test_auxiliary_values_stand_for_the_same_when_the_scale_of_returns_moves() -> None:
    environment = Matching(Discrete(3), scale=100.0)
    trained, batches = learnt(environment, normalize=NormalizeSpec(returns="pop_art"))
    seen = {key: array[:-1] for key, array in batches[0].observations.items()}

    def values() -> Tensor:
        said = trained.evaluate(seen, {}, batches[0].first[:-1], action_masks=None)
        return trained.policy.denormalize_values(said.auxiliary_values).detach()

    algorithm = rule(trained, batches[0], learning_rate=0.0, **NEVER)
    before = values()
    finish(algorithm.update(batches[0]))
    assert trained.policy.normalize_values(torch.tensor(100.0)).abs() < 10
    torch.testing.assert_close(values(), before, rtol=1e-4, atol=1e-3)


def test_normalizers_take_in_every_batch_once() -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment, normalize=NORMALIZED)
    algorithm = rule(trained, batches[0])
    for batch in batches:
        finish(algorithm.update(batch))
    counts = {name: t.item() for name, t in trained.policy.state_dict().items() if name.endswith("count")}
    assert set(counts.values()) == {float(sum(int(batch.valid.sum()) for batch in batches))}
    assert len(counts) == 2


@pytest.mark.parametrize("name", ["none", "chunks"])
def test_two_trainers_learn_what_one_learns_from_both_batches(name: str) -> None:
    environment, memory = Matching(Discrete(3), num_environments=16), MEMORIES[name]
    whole, batches = learnt(environment, memory, NORMALIZED)
    # One minibatch holds everything, however it is drawn; Adam divides by nothing small.
    settings = {"minibatches": 1, "auxiliary_minibatches": 1, "auxiliary_every_updates": 1, "adam_epsilon": 1e-3}
    batches[0].valid[:, :3] = False  # the trainers' valid counts differ
    alone = rule(whole, batches[0], **settings)
    expected = [finish(alone.update(batch)) for batch in batches]

    shared = SharedSum(2)
    pairs = []
    for seed in (0, 1):
        own = trained_of(environment, recurrent=memory.get("recurrent"), normalize=NORMALIZED)
        pairs.append((own, rule(own, columns_of(batches[0], slice(8)), context(seed, shared), **settings)))
    for number, batch in enumerate(batches):
        parts = [columns_of(batch, part) for part in (slice(8), slice(8, 16))]
        found = finish_together([pair[1].update(part) for pair, part in zip(pairs, parts, strict=True)])
        assert found[0] == found[1]
        wanted = {name: value for name, value in expected[number].items() if name != "ratio_max_deviation_first"}
        assert {name: found[0][name] for name in wanted} == pytest.approx(wanted, rel=1e-3, abs=1e-5)
    assert same(weights(pairs[0][0]), weights(pairs[1][0]))
    torch.testing.assert_close(weights(pairs[0][0]), weights(whole), rtol=1e-3, atol=1e-4)


def columns_of(batch: Batch, part: slice) -> Batch:
    """Some columns of a batch, chunk states included."""
    taken = columns(batch, part)
    chunks = {name: t[:, part] for name, t in batch.fields.items() if name.startswith("chunk_state.")}
    return changed(taken, **chunks)


def test_trainers_with_other_seeds_and_many_minibatches_stay_together() -> None:
    environment = Matching(Discrete(3), num_environments=16)
    _, batches = learnt(environment)
    shared = SharedSum(2)
    pairs = []
    for seed in (0, 1):
        own = trained_of(environment)
        pairs.append((own, rule(own, columns_of(batches[0], slice(8)), context(seed, shared))))
    for batch in batches:
        parts = [columns_of(batch, part) for part in (slice(8), slice(8, 16))]
        parts[1].valid[:] = False
        found = finish_together([pair[1].update(part) for pair, part in zip(pairs, parts, strict=True)])
        assert found[0] == found[1]
    assert same(weights(pairs[0][0]), weights(pairs[1][0]))


def test_collective_calls_do_not_depend_on_the_data() -> None:
    environment = Matching(Discrete(3))
    sizes = []
    for valid in (True, False):
        reducer = OwnSum()
        trained, batches = learnt(environment, MEMORIES["lstm"], NORMALIZED)
        algorithm = rule(trained, batches[0], context(0, reducer))
        for batch in batches:
            finish(algorithm.update(batch if valid else changed(batch, valid=torch.zeros_like(batch.valid))))
        sizes.append(reducer.sizes)
    assert sizes[0] == sizes[1]


def test_phase_without_valid_records_changes_no_parameter() -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment)
    algorithm = rule(trained, batches[0])
    for batch in batches[:2]:
        finish(algorithm.update(batch))
    before = weights(trained)
    for batch in batches[2:]:
        metrics = finish(algorithm.update(changed(batch, valid=torch.zeros_like(batch.valid))))
    assert metrics["auxiliary_phases"] == 2
    assert same(before, weights(trained))
    assert all(math.isfinite(number) for number in metrics.values())


def test_update_yields_between_minibatches_of_its_phase() -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment)
    algorithm = rule(trained, batches[0])
    yields = [sum(1 for _ in algorithm.update(batch)) for batch in batches[:2]]
    # Two batches of two minibatches each, seen once before and twice in training.
    assert yields[1] - yields[0] >= 4 + 2 * 4


def test_metrics_of_the_last_phase_are_told_until_the_next() -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment)
    algorithm = rule(trained, batches[0])
    told = [finish(algorithm.update(batch)) for batch in batches]
    assert not set(METRICS) & set(told[0])
    last = [{name: metrics[name] for name in METRICS} for metrics in told[1:]]
    assert last[0] == last[1]
    assert last[1] != last[2]


def test_schedule_of_the_phase_follows_the_trained_steps() -> None:
    environment = Matching(Discrete(3))
    moved = []
    for steps in (0, 1000):
        trained, batches = learnt(environment)
        rate = {"start": 1e-3, "end": 0.0, "steps": 1000}
        algorithm = rule(trained, batches[0], auxiliary_learning_rate=rate, auxiliary_every_updates=1)
        before = trained.auxiliary_head.linear.weight.clone()
        finish(algorithm.update(replace(batches[0], steps=steps)))
        moved.append(not torch.equal(before, trained.auxiliary_head.linear.weight))
    assert moved == [True, False]


def test_bfloat16_keeps_parameters_and_losses_float32() -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment, MEMORIES["lstm"])
    algorithm = rule(trained, batches[0], context(autocast=torch.bfloat16))
    for batch in batches[:2]:
        for _ in (update := algorithm.update(batch)):
            assert not torch.is_autocast_enabled("cpu")
            assert torch.is_grad_enabled()
        del update
    assert {parameter.dtype for parameter in trained.parameters()} == {torch.float32}
