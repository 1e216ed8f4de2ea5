"""What phasic policy gradient keeps between updates, and what a checkpoint holds of it."""

from __future__ import annotations

import copy
import logging
from dataclasses import replace

import pytest
import torch

from srlhpc.algorithms.algorithm import DivergedError
from srlhpc.environment import Discrete
from tests.algorithms.collecting import changed, finish
from tests.algorithms.phasic_learner import MEMORIES, NORMALIZED, learnt, rule, same, trained_of, weights
from tests.algorithms.tiny_environments import Matching


@pytest.mark.parametrize("name", ["none", "chunks", "burn-in"])
def test_restored_state_goes_on_bit_for_bit_between_phases_and_across_one(name: str) -> None:
    environment, memory = Matching(Discrete(3)), MEMORIES[name]
    trained, batches = learnt(environment, memory, NORMALIZED)
    settings = {"auxiliary_every_updates": 3}
    algorithm = rule(trained, batches[0], **settings)
    shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in algorithm.state().items()}
    told = []
    for number in range(8):
        if number in (2, 4):
            saved = copy.deepcopy((trained.policy.state_dict(), dict(algorithm.state())))
            trained = trained_of(environment, recurrent=memory.get("recurrent"), normalize=NORMALIZED)
            trained.auxiliary_head.linear.weight.data.fill_(7.0)
            algorithm = rule(trained, batches[0], **settings)
            trained.policy.load_state_dict(saved[0])
            algorithm.load_state(saved[1])
        told.append(finish(algorithm.update(replace(batches[number % 4], version=number))))
        assert {name: (tensor.shape, tensor.dtype) for name, tensor in algorithm.state().items()} == shapes
    undisturbed, batches = learnt(environment, memory, NORMALIZED)
    algorithm = rule(undisturbed, batches[0], **settings)
    assert told == [finish(algorithm.update(replace(batches[n % 4], version=n))) for n in range(8)]
    assert same(weights(trained), weights(undisturbed))
    assert told[-1]["auxiliary_phases"] == 2


def test_observations_are_kept_in_their_dtype_and_targets_in_units_of_the_return() -> None:
    environment = Matching(Discrete(3), scale=1000.0)
    trained, batches = learnt(environment, normalize=NORMALIZED)
    bytes_, exact = torch.randint(255, (13, 16, 5), dtype=torch.uint8), torch.randn(13, 16, 2, dtype=torch.float64)
    batch = changed(batches[0], **{"obs.bytes": bytes_, "obs.exact": exact})
    algorithm = rule(trained, batch, gae_lambda=1.0, gamma=1.0)
    finish(algorithm.update(batch))
    state = algorithm.state()
    assert torch.equal(state["kept.obs.bytes"][:, :16], bytes_[:-1])
    assert torch.equal(state["kept.obs.exact"][:, :16], exact[:-1])
    assert state["kept.count"] == 1
    assert {name for name in state if name.startswith("kept.")} == {
        *("kept.count", "kept.targets", "kept.valid", "kept.first", "kept.obs.cue", "kept.obs.bytes", "kept.obs.exact"),
    }
    # With lambda 1, targets of what ends within the batch are sums of rewards.
    (t, b), *_ = (batch.terminated & batch.valid).nonzero().tolist()
    assert state["kept.targets"][t, b].item() == pytest.approx(batch.rewards[t, b].item(), abs=1e-3)


def test_later_uses_of_a_batch_are_not_kept() -> None:
    environment = Matching(Discrete(3))
    trained, (batch, *_) = learnt(environment)
    algorithm = rule(trained, batch, auxiliary_every_updates=3)
    uses = [finish(algorithm.update(replace(batch, is_first_use=number % 2 == 0))) for number in range(6)]
    assert [metrics["auxiliary_phases"] for metrics in uses] == [0, 0, 0, 0, 1, 1]


def test_divergence_in_a_phase_leaves_everything_as_before_the_update() -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment, normalize=NORMALIZED)
    algorithm = rule(trained, batches[0])
    finish(algorithm.update(batches[0]))
    t, b = batches[0].valid.nonzero()[-1].tolist()
    algorithm.state()["kept.targets"][t, b] = float("nan")
    before, state = weights(trained), copy.deepcopy(dict(algorithm.state()))
    with pytest.raises(DivergedError, match="the loss is nan"):
        finish(algorithm.update(batches[1]))
    assert same(before, weights(trained))
    after = algorithm.state()
    meant = [name for name in state if not name.startswith("kept.") or name == "kept.count"]
    assert all(torch.equal(after[name], state[name]) for name in meant)


def test_kept_batches_of_another_job_are_left_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment)
    algorithm = rule(trained, batches[0])
    finish(algorithm.update(batches[0]))
    state = copy.deepcopy(dict(algorithm.state()))
    other = rule(trained_of(environment), batches[0], auxiliary_every_updates=5)
    with caplog.at_level(logging.WARNING):
        other.load_state(state)
    assert "the next auxiliary phase comes after 5 updates" in caplog.text
    assert other.state()["kept.count"] == 0
    assert torch.equal(other.state()["policy.adam.exp_avg"], state["policy.adam.exp_avg"])


def test_checkpoints_may_do_without_the_kept_batches(caplog: pytest.LogCaptureFixture) -> None:
    environment = Matching(Discrete(3))
    trained, batches = learnt(environment)
    algorithm = rule(trained, batches[0], keeps_in_checkpoints=False)
    finish(algorithm.update(batches[0]))
    state = copy.deepcopy(dict(algorithm.state()))
    assert not [name for name in state if name.startswith("kept.")]
    with caplog.at_level(logging.WARNING):
        algorithm.load_state(state)
    assert not caplog.text
    told = [finish(algorithm.update(batch))["auxiliary_phases"] for batch in batches[:2]]
    assert told == [0, 1]


def test_state_of_another_network_is_refused() -> None:
    batches, algorithms = [], []
    for choices in (3, 4):
        trained, made = learnt(Matching(Discrete(choices)))
        batches.append(made[0])
        algorithms.append(rule(trained, made[0]))
    with pytest.raises(ValueError, match="state of ppg has .* expected"):
        algorithms[0].load_state(algorithms[1].state())
