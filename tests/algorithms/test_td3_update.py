"""What one TD3 update promises beyond what all rules of an actor and critics do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms.td3.loss import actor_loss
from srlhpc.rl.deterministic import Deterministic
from srlhpc.rl.td import one_step
from tests.algorithms.actor_and_critics import CRITICS_ALONE, TD3, everything, flat, learner
from tests.algorithms.collecting import SharedSum, context, finish, finish_together, updated
from tests.algorithms.transitions import windows

DELAYED = {"kind": "td3"}
ACTOR = ("network.actor.", "actor.", "actor_target.")


def moved(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_targets_are_the_numbers_worked_out_by_hand() -> None:
    # pi' = .8, noise .9 beyond its clip of .5: a' = 1. Its critics say 4 and 3.2, and r = .5.
    policy = Deterministic(torch.atanh(torch.tensor([[0.8]])))
    assert policy.smoothed(torch.tensor([[4.5]]), std=0.2, clip=0.5).item() == 1.0
    values = torch.tensor([[4.0], [3.2]])
    target = one_step(torch.tensor([0.5]), torch.tensor([False]), values.amin(0), gamma=0.99)
    assert target.item() == pytest.approx(3.668)


def test_actor_loss_raises_the_first_critics_value_of_valid_records() -> None:
    values = torch.tensor([2.0, float("nan"), -0.5], requires_grad=True)
    loss = actor_loss(values, torch.tensor([True, False, True]))
    assert loss.item() == -1.5
    loss.backward()
    assert values.grad is not None
    assert values.grad.tolist() == [-1.0, 0.0, -1.0]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_actor_and_targets_move_at_every_so_many_updates_and_act_then(every: int) -> None:
    trained, algorithm = learner(DELAYED, actor_every_updates=every)
    for version in range(6):
        before = everything(trained, algorithm)
        update = updated(algorithm.update(windows(seed=version, version=version)))
        changes = moved(before, everything(trained, algorithm))
        moves = version % every == every - 1
        assert any(name.startswith("network.critics.") for name in changes)
        assert ("targets.parameters" in changes) == moves
        assert any(name.startswith(ACTOR) for name in changes) == moves
        assert ("actor_target.parameters" in changes) == moves
        assert update.publishes == moves
        assert {name for name in update.metrics if name.startswith("actor")} == (
            {"actor_loss", "actor_gradient_norm", "actor_learning_rate"} if moves else set()
        )


def test_both_targets_follow_by_the_polyak_share_of_all_updates_since() -> None:
    trained, algorithm = learner(DELAYED, polyak=0.25, critic_learning_rate=0.1, actor_learning_rate=0.1)
    before = {name: tensor.clone() for name, tensor in algorithm.state().items() if name.endswith("parameters")}
    for version in range(2):
        finish(algorithm.update(windows(version=version)))
    state = algorithm.state()
    for name, module in (("actor_target", trained.actor), ("targets", trained.critics)):
        old = before[f"{name}.parameters"]
        torch.testing.assert_close(state[f"{name}.parameters"], old + 0.25 * (flat(module) - old))


def test_targets_of_critics_may_move_at_every_update() -> None:
    trained, algorithm = learner(CRITICS_ALONE, critic_targets_every_update=True, polyak=0.25)
    old = everything(trained, algorithm)
    finish(algorithm.update(windows()))
    assert "actor_target.parameters" not in moved(old, everything(trained, algorithm))
    expected = torch.lerp(old["targets.parameters"], flat(trained.critics), 0.25)
    torch.testing.assert_close(algorithm.state()["targets.parameters"], expected)


def test_noise_that_is_clipped_to_nothing_is_no_noise() -> None:
    def target_mean(**keys: float) -> float:
        return finish(learner(TD3, **keys)[1].update(windows()))["q_target_mean"]

    assert target_mean(target_noise=5.0, target_noise_clip=0.0) == target_mean(target_noise=0.0)
    assert target_mean(target_noise=5.0, target_noise_clip=0.5) != target_mean(target_noise=0.0)


def test_message_is_longer_by_the_actor_in_updates_that_move_it() -> None:
    reducer = SharedSum(2)
    pairs = [learner(DELAYED, context(seed, reducer)) for seed in (0, 1)]
    for version in range(4):
        finish_together([algorithm.update(windows(version=version)) for _, algorithm in pairs])
    assert len(reducer.sizes) == 4
    assert reducer.sizes[:2] == reducer.sizes[2:]
    # and its loss
    assert reducer.sizes[1] - reducer.sizes[0] == len(flat(pairs[0][0].actor)) + 1
