"""What one SAC update promises beside learning."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from srlhpc.algorithms import sac
from srlhpc.algorithms.algorithm import Batch, Context, DivergedError
from srlhpc.algorithms.sac import update as sac_update
from srlhpc.algorithms.sac.update import Sac
from srlhpc.algorithms.transitions import standard_normal
from srlhpc.environment import Discrete, Kind, MultiDiscrete
from srlhpc.errors import UserError
from srlhpc.policies import mlp
from srlhpc.policies.contracts import ActorAndCritics
from srlhpc.specs.actor_heads import SquashedGaussianHead
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.experiment import NormalizeSpec
from tests.algorithms.collecting import OwnSum, SharedSum, changed, context, finish, finish_together, updated
from tests.algorithms.transitions import WALKER, windows
from tests.policies.making import kind


def settings(**keys: Any) -> sac.Settings:
    return sac.Settings.model_validate({"kind": "sac", **keys})


def learner(using: Context | None = None, agents: Kind = WALKER, **keys: Any) -> tuple[ActorAndCritics, Sac]:
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [16, 16], "activation": "relu"})
    trained = mlp.build_critics(
        network, mlp.build_actor(network, agents, NormalizeSpec(), SquashedGaussianHead()), NormalizeSpec()
    )
    using = using or context()
    algorithm = sac.build(settings(**keys), trained.to(using.device), using)
    assert isinstance(algorithm, Sac)
    return trained, algorithm


def everything(trained: ActorAndCritics, algorithm: Sac) -> dict[str, Tensor]:
    tensors = {f"network.{name}": tensor.clone() for name, tensor in trained.state_dict().items()}
    return tensors | {name: tensor.clone() for name, tensor in algorithm.state().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one | other)


def columns(batch: Batch, part: slice) -> Batch:
    weights = None if batch.weights is None else batch.weights[part]
    return replace(batch, fields={name: tensor[:, part] for name, tensor in batch.fields.items()}, weights=weights)


def shared_noise(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Lets each trainer draw the noise of its windows, as a single trainer of all of them would."""

    def noise(context: Context, version: int, two: int, rows: int, dimensions: int) -> Tensor:
        steps = rows // columns if rows % columns == 0 else 2 * rows // columns
        whole = torch.randn(two, steps, columns, dimensions, generator=torch.Generator().manual_seed(version))
        part = (
            slice(None)
            if rows == steps * columns
            else slice(context.seed * columns // 2, (context.seed + 1) * columns // 2)
        )
        return whole[:, :, part].flatten(1, 2)

    monkeypatch.setattr(sac_update, "standard_normal", noise)


def test_gradients_are_those_of_the_written_out_losses() -> None:
    trained, algorithm = learner(temperature=0.3)
    batch = windows(records=2)
    reference = copy.deepcopy(trained)
    rows = {name: tensor.flatten(0, 1) for name, tensor in batch.fields.items() if name not in ("obs.body", "first")}
    seen, later = (batch.observations["body"][part].flatten(0, 1) for part in (slice(0, 2), slice(1, 3)))
    now, then = standard_normal(context(), 0, 2, len(seen), 2)

    def drawn(observations: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        distribution = reference.actor.distribution(reference.actor.encode({"body": observations}))
        unbounded = distribution.means + distribution.log_stds.exp() * noise
        normal = torch.distributions.Normal(distribution.means, distribution.log_stds.exp()).log_prob(unbounded)
        return torch.tanh(unbounded), (normal - torch.log(1 - torch.tanh(unbounded) ** 2)).sum(-1)

    def values(observations: Tensor, actions: Tensor) -> Tensor:
        result: Tensor = reference.critics(reference.actor.encode({"body": observations}), actions)
        return result

    with torch.no_grad():
        actions, log_probs = drawn(later, then)
        soft = values(later, actions).min(0).values - 0.3 * log_probs
        targets = rows["rewards"] + 0.99 * (1 - rows["terminated"].float()) * soft
    errors = values(seen, rows["actions"]) - targets
    critic = (0.5 * errors.square()).sum(0)[rows["valid"]].mean()
    of_critics = torch.autograd.grad(critic, list(reference.critics.parameters()))
    actions, log_probs = drawn(seen, now)
    actor = (0.3 * log_probs - values(seen, actions).min(0).values)[rows["valid"]].mean()
    of_actor = torch.autograd.grad(actor, list(reference.actor.parameters()))

    update = updated(algorithm.update(batch))
    for parameter, expected in zip(trained.critics.parameters(), of_critics, strict=True):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-3, atol=1e-5)
    for parameter, expected in zip(trained.actor.parameters(), of_actor, strict=True):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-3, atol=1e-5)
    assert update.metrics["critic_loss"] == pytest.approx(critic.item(), rel=1e-4)
    assert update.metrics["actor_loss"] == pytest.approx(actor.item(), rel=1e-4)
    assert update.metrics["entropy"] == pytest.approx(-log_probs[rows["valid"]].mean().item(), rel=1e-4)
    found = [update.metrics[name] for name in ("q_mean", "q_target_mean", "td_error")]
    mine = [tensor[..., rows["valid"]].mean().item() for tensor in (errors + targets, targets, errors.abs())]
    assert found == pytest.approx(mine, rel=1e-3, abs=1e-5)


def test_feedback_is_the_mean_absolute_error_of_each_window() -> None:
    trained, algorithm = learner()
    batch = windows(records=3, columns=4)
    batch.valid[:, 2] = False
    with torch.no_grad():
        before = copy.deepcopy(trained)
        _, then = standard_normal(context(), 0, 2, 12, 2)
        encoded = [before.actor.encode({"body": batch.observations["body"][part]}) for part in (slice(3), slice(1, 4))]
        drawn = before.actor.distribution(encoded[1]).draw(then)
        soft = before.critics(encoded[1], drawn.actions).min(0).values - drawn.log_probs
        targets = batch.rewards.flatten() + 0.99 * ~batch.terminated.flatten() * soft
        errors = (before.critics(encoded[0], batch.actions.flatten(0, 1)) - targets).abs().mean(0).view(3, 4)
    feedback = updated(algorithm.update(batch)).feedback
    assert feedback is not None
    assert feedback.shape == (4,)
    expected = [errors[:, b][batch.valid[:, b]].mean().item() if b != 2 else 0.0 for b in range(4)]
    assert feedback.tolist() == pytest.approx(expected, rel=1e-4)


def test_weights_scale_the_error_of_their_window_in_the_critics_alone() -> None:
    batch = windows(columns=8)
    batch.valid[:] = True
    only_first = torch.tensor([1.0] + [0.0] * 7)
    gradients = []
    for used in (replace(batch, weights=only_first), columns(batch, slice(1)), batch):
        trained, algorithm = learner()
        if len(used.rewards[0]) == 1:
            noise = standard_normal(context(), 0, 2, 8, 2)[:, :1]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sac_update, "standard_normal", lambda *_, noise=noise: noise)
                updated(algorithm.update(used))
        else:
            updated(algorithm.update(used))
        parts = (trained.critics, trained.actor)
        gradients.append([[copy.deepcopy(p.grad) for p in part.parameters()] for part in parts])
    weighted, alone, unweighted = gradients
    for one, other in zip(weighted[0], alone[0], strict=True):
        torch.testing.assert_close(8 * one, other, rtol=1e-4, atol=1e-5)
    for one, other in zip(weighted[1], unweighted[1], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("records", [1, 3])
def test_two_trainers_learn_what_one_learns_from_both_batches(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    shared_noise(monkeypatch, columns=32)
    batch = windows(records=records, columns=32, weights=torch.rand(32))
    batch.valid[:, :5] = False  # the trainers' valid counts differ
    whole, alone = learner()
    expected = updated(alone.update(batch))

    reducer = SharedSum(2)
    pairs = [learner(context(seed, reducer)) for seed in (0, 1)]
    parts = [columns(batch, slice(16)), columns(batch, slice(16, 32))]
    metrics = finish_together([pair[1].update(part) for pair, part in zip(pairs, parts, strict=True)])
    assert metrics[0] == metrics[1]
    assert same(everything(*pairs[0]), everything(*pairs[1]))
    assert metrics[0] == pytest.approx(expected.metrics, rel=1e-4, abs=1e-6)
    mine, theirs = everything(*pairs[0]), everything(whole, alone)
    for name, tensor in theirs.items():
        torch.testing.assert_close(mine[name], tensor, rtol=1e-3, atol=1e-4, msg=name)
    assert len(reducer.sizes) == 1


def test_collective_calls_do_not_depend_on_the_data() -> None:
    sizes = []
    for valid in (True, False):
        reducer = SharedSum(1)
        reducer.trainers = 1
        _, algorithm = learner(context(0, reducer))
        batch = windows()
        finish(algorithm.update(batch if valid else changed(batch, valid=torch.zeros_like(batch.valid))))
        sizes.append(reducer.sizes)
    assert sizes[0] == sizes[1]


def test_updates_with_equal_seed_and_version_are_equal_bit_for_bit() -> None:
    results = []
    for seed, version in ((0, 3), (0, 3), (1, 3), (0, 4)):
        trained, algorithm = learner(context(seed))
        finish(algorithm.update(windows(version=version)))
        results.append(everything(trained, algorithm))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])
    assert not same(results[0], results[3])


@pytest.mark.parametrize("temperature", ["auto", 0.1])
def test_restored_state_continues_bit_for_bit(temperature: Any) -> None:
    trained, algorithm = learner(temperature=temperature)
    for version in range(3):
        finish(algorithm.update(windows(seed=version, version=version)))
    acting = copy.deepcopy(trained.actor.state_dict())
    saved = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    expected = finish(algorithm.update(windows(seed=3, version=3)))
    resumed, other = learner(temperature=temperature)
    resumed.actor.load_state_dict(acting)
    other.load_state(saved)
    assert finish(other.update(windows(seed=3, version=3))) == expected
    assert same(everything(trained, algorithm), everything(resumed, other))


def test_state_of_another_network_or_setting_is_refused() -> None:
    _, algorithm = learner()
    for _, other in (learner(agents=kind(actions=WALKER.actions)), learner(temperature=0.1)):
        with pytest.raises(ValueError, match="state of sac has .* expected"):
            algorithm.load_state(other.state())


def test_targets_follow_by_the_polyak_share() -> None:
    trained, algorithm = learner(polyak=0.25, critic_learning_rate=0.1)
    before = algorithm.state()["targets.parameters"].clone()
    torch.testing.assert_close(before, torch.cat([p.detach().flatten() for p in trained.critics.parameters()]))
    finish(algorithm.update(windows()))
    now = torch.cat([p.detach().flatten() for p in trained.critics.parameters()])
    torch.testing.assert_close(algorithm.state()["targets.parameters"], before + 0.25 * (now - before))


def test_all_learn_from_the_parameters_before_the_update() -> None:
    # critics that have just moved far would give the actor another gradient
    gradients = []
    for rate in (0.0, 10.0):
        trained, algorithm = learner(critic_learning_rate=rate)
        finish(algorithm.update(windows()))
        gradients.append([p.grad for p in trained.actor.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_first_step_of_adam_moves_each_part_by_its_own_learning_rate() -> None:
    rates = {"critic_learning_rate": 0.125, "actor_learning_rate": 0.25, "temperature_learning_rate": 0.5}
    trained, algorithm = learner(adam_epsilon=1e-12, **rates)
    before = everything(trained, algorithm)
    finish(algorithm.update(windows()))
    after = everything(trained, algorithm)
    moved = {name: (after[name] - before[name]).abs().max().item() for name in after}
    assert moved["network.critics.heads.0.linear.bias"] == pytest.approx(0.125, rel=1e-3)
    assert moved["network.actor.head.bias"] == pytest.approx(0.25, rel=1e-3)
    assert moved["temperature.logarithm"] == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(("target", "grows"), [(-1000.0, False), (1000.0, True)])
def test_temperature_grows_while_entropy_lacks(target: float, grows: bool) -> None:
    _, algorithm = learner(target_entropy=target)
    temperatures = [finish(algorithm.update(windows(version=v)))["temperature"] for v in range(3)]
    assert temperatures[0] == 1.0
    assert (temperatures[2] > temperatures[1] > 1.0) == grows
    assert (temperatures[2] < temperatures[1] < 1.0) != grows


def test_entropy_is_kept_at_minus_the_dimensions_by_default() -> None:
    _, algorithm = learner()
    metrics = finish(algorithm.update(windows()))
    _, other = learner(target_entropy=-2.0)
    finish(other.update(windows()))
    gradient = metrics["temperature"] * (metrics["entropy"] + 2.0)
    first_moment = algorithm.state()["temperature.adam.exp_avg"]
    assert first_moment.item() == pytest.approx(0.1 * gradient, rel=1e-4)
    assert torch.equal(first_moment, other.state()["temperature.adam.exp_avg"])


def test_fixed_temperature_stays() -> None:
    _, algorithm = learner(temperature=0.2)
    for version in range(2):
        assert finish(algorithm.update(windows(version=version)))["temperature"] == pytest.approx(0.2)
    assert not any(name.startswith("temperature") for name in algorithm.state())


@pytest.mark.parametrize("field", ["rewards", "obs.body", "actions"])
def test_divergence_is_named_and_leaves_everything_as_before_the_update(field: str) -> None:
    trained, algorithm = learner()
    finish(algorithm.update(windows()))
    batch = windows(version=1)
    batch.valid[0, 0] = True
    batch.fields[field][0, 0] = float("nan")
    before = everything(trained, algorithm)
    with pytest.raises(DivergedError, match="the (critic loss|.* gradient norm) is nan"):
        finish(algorithm.update(batch))
    assert same(before, everything(trained, algorithm))


def test_batch_without_valid_records_changes_nothing() -> None:
    trained, algorithm = learner()
    finish(algorithm.update(windows()))
    before = everything(trained, algorithm)
    batch = windows(version=1)
    metrics = finish(algorithm.update(changed(batch, valid=torch.zeros_like(batch.valid))))
    assert same(before, everything(trained, algorithm))
    assert all(math.isfinite(number) for number in metrics.values())


def test_gradients_are_clipped_each_by_its_own_norm() -> None:
    trained, algorithm = learner(max_gradient_norm=1e-3)
    metrics = finish(algorithm.update(windows()))
    assert min(metrics["critic_gradient_norm"], metrics["actor_gradient_norm"]) > 1e-2
    state = algorithm.state()
    for part in ("actor", "critics"):
        assert 10 * state[f"{part}.adam.exp_avg"].norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_schedules_follow_the_trained_steps() -> None:
    _, algorithm = learner(actor_learning_rate={"start": 1e-3, "end": 0.0, "steps": 1000})
    updates = [finish(algorithm.update(windows(version=v, steps=steps))) for v, steps in enumerate((0, 500, 2000))]
    rates = [metrics["actor_learning_rate"] for metrics in updates]
    assert rates == pytest.approx([1e-3, 5e-4, 0.0])


def test_bfloat16_keeps_parameters_and_losses_float32() -> None:
    trained, algorithm = learner(context(autocast=torch.bfloat16))
    generator = algorithm.update(windows())
    for _ in generator:
        assert not torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()
    metrics = finish(algorithm.update(windows(version=1)))
    assert all(math.isfinite(number) for number in metrics.values())
    assert {tensor.dtype for tensor in trained.parameters()} == {torch.float32}


def test_update_yields_between_its_parts() -> None:
    _, algorithm = learner(context(0, OwnSum()))
    assert sum(1 for _ in algorithm.update(windows())) >= 1


@pytest.mark.parametrize("actions", [Discrete(3), MultiDiscrete((2, 3))], ids=["discrete", "multi-discrete"])
def test_discrete_actions_are_refused(actions: Discrete | MultiDiscrete) -> None:
    with pytest.raises(UserError, match="draws continuous actions, but agents of kind 'walkers' take .*discrete ones"):
        settings().needs(kind(actions=actions))


def test_memory_is_refused() -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "recurrent": {"kind": "lstm"}})
    with pytest.raises(ValidationError, match="sac trains networks without memory; set it to null"):
        settings().check(BatchSpec(fragments=4), network)


def test_standard_deviation_out_of_its_range_is_refused() -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "initial_log_std": -5.0})
    with pytest.raises(ValidationError, match="must lie between -5 and 2"):
        settings().check(BatchSpec(fragments=4), network)


@pytest.mark.parametrize("keys", [{"target_entropy": -1.0}, {"temperature_learning_rate": 1e-3}])
def test_settings_of_a_temperature_that_nothing_trains_are_refused(keys: dict[str, float]) -> None:
    settings(**keys)
    with pytest.raises(ValidationError, match=r"but temperature is 0\.2, which nothing trains"):
        settings(temperature=0.2, **keys)


def test_negative_learning_rates_are_refused() -> None:
    with pytest.raises(ValidationError, match="must not be negative"):
        settings(critic_learning_rate={"start": 1.0, "end": -1.0, "steps": 5})
