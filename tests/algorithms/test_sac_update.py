"""What one SAC update promises beyond what all rules of an actor and critics do: its temperature."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from srlhpc.algorithms.transitions import standard_normal
from srlhpc.policies import mlp
from srlhpc.specs.batch import BatchSpec
from tests.algorithms.actor_and_critics import SAC, everything, learner, settings
from tests.algorithms.collecting import context, finish
from tests.algorithms.transitions import windows


def test_entropy_of_drawn_actions_is_told() -> None:
    trained, algorithm = learner(SAC)
    batch = windows()
    noise, _ = standard_normal(context(), 0, 2, 32, 2)
    seen = trained.actor.encode({"body": batch.observations["body"][:1]})
    log_probs = trained.actor.distribution(seen).draw(noise).log_probs.detach()
    metrics = finish(algorithm.update(batch))
    assert metrics["entropy"] == pytest.approx(-log_probs[batch.valid[0]].mean().item(), rel=1e-4)


def test_first_step_moves_the_temperature_by_its_learning_rate() -> None:
    trained, algorithm = learner(SAC, adam_epsilon=1e-12, temperature_learning_rate=0.5)
    before = everything(trained, algorithm)["temperature.logarithm"]
    finish(algorithm.update(windows()))
    after = everything(trained, algorithm)["temperature.logarithm"]
    assert (after - before).abs().item() == pytest.approx(0.5, rel=1e-3)


def test_state_without_a_trained_temperature_is_refused() -> None:
    _, algorithm = learner(SAC)
    with pytest.raises(ValueError, match="state of sac has .* expected"):
        algorithm.load_state(learner(SAC, temperature=0.1)[1].state())


@pytest.mark.parametrize(("target", "grows"), [(-1000.0, False), (1000.0, True)])
def test_temperature_grows_while_entropy_lacks(target: float, grows: bool) -> None:
    _, algorithm = learner(SAC, target_entropy=target)
    temperatures = [finish(algorithm.update(windows(version=v)))["temperature"] for v in range(3)]
    assert temperatures[0] == 1.0
    assert (temperatures[2] > temperatures[1] > 1.0) == grows
    assert (temperatures[2] < temperatures[1] < 1.0) != grows


def test_entropy_is_kept_at_minus_the_dimensions_by_default() -> None:
    _, algorithm = learner(SAC)
    metrics = finish(algorithm.update(windows()))
    _, other = learner(SAC, target_entropy=-2.0)
    finish(other.update(windows()))
    gradient = metrics["temperature"] * (metrics["entropy"] + 2.0)
    first_moment = algorithm.state()["temperature.adam.exp_avg"]
    assert first_moment.item() == pytest.approx(0.1 * gradient, rel=1e-4)
    assert torch.equal(first_moment, other.state()["temperature.adam.exp_avg"])


def test_fixed_temperature_stays() -> None:
    _, algorithm = learner(SAC, temperature=0.2)
    for version in range(2):
        assert finish(algorithm.update(windows(version=version)))["temperature"] == pytest.approx(0.2)
    assert not any(name.startswith("temperature") for name in algorithm.state())


def test_standard_deviation_out_of_its_range_is_refused() -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "initial_log_std": -5.0})
    with pytest.raises(ValidationError, match="must lie between -5 and 2"):
        settings(SAC).check(BatchSpec(fragments=4), network)


@pytest.mark.parametrize("keys", [{"target_entropy": -1.0}, {"temperature_learning_rate": 1e-3}])
def test_settings_of_a_temperature_that_nothing_trains_are_refused(keys: dict[str, float]) -> None:
    settings(SAC, **keys)
    with pytest.raises(ValidationError, match=r"but temperature is 0\.2, which nothing trains"):
        settings(SAC, temperature=0.2, **keys)
