"""What one update of `dagger` and of `behaviour_cloning` promises beside learning."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from srlhpc.algorithms import behaviour_cloning, dagger
from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError
from srlhpc.environment import ActionSpace, Continuous, Discrete, MultiDiscrete
from srlhpc.policies import mlp
from srlhpc.policies.contracts import ActorCriticPolicy
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import SharedSum, changed, context, finish_together, updated
from tests.algorithms.transitions import windows
from tests.policies.making import kind, vector

LSTM = {"kind": "lstm", "size": 8}
ACTIONS: dict[str, ActionSpace] = {
    "discrete": Discrete(3),
    "parts": MultiDiscrete((2, 3)),
    "continuous": Continuous(2),
}


def learner(
    actions: ActionSpace = ACTIONS["discrete"],
    using: Context | None = None,
    *,
    recurrent: Any = None,
    masked: bool = False,
    **keys: Any,
) -> tuple[ActorCriticPolicy, Algorithm]:
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [16], "recurrent": recurrent})
    policy = mlp.build(network, kind({"body": vector(3)}, actions, masked=masked), NormalizeSpec())
    rule = behaviour_cloning.Settings.model_validate({"kind": "behaviour_cloning", **keys})
    return policy, behaviour_cloning.build(rule, policy, using or context())


def labels_of(actions: ActionSpace, *shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    match actions:
        case Discrete(choices=choices):
            return torch.randint(0, choices, shape, generator=generator)
        case MultiDiscrete(choices=choices):
            return torch.stack([torch.randint(0, n, shape, generator=generator) for n in choices], -1)
        case Continuous(size=size):
            return torch.randn(*shape, size, generator=generator)


def drawn(
    actions: ActionSpace = ACTIONS["discrete"], *, trained: int = 2, burn_in: int = 0, columns: int = 24, seed: int = 0
) -> Batch:
    agents = kind({"body": vector(3)}, Continuous(1))
    batch = windows(agents, records=burn_in + trained, columns=columns, seed=seed, burn_in_steps=burn_in)
    return changed(batch, actions=labels_of(actions, burn_in + trained, columns, seed=seed))


def parameters(policy: ActorCriticPolicy) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])


def test_loss_is_the_mean_of_minus_log_probabilities() -> None:
    """Worked by hand: policy .7, .2, .1, label 0: .356675."""
    policy, algorithm = learner(entropy_coefficient=0.0, learning_rate=0.0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        biases = [parameter for parameter in policy.parameters() if parameter.shape == (3,)]
        biases[-1].copy_(torch.tensor([0.7, 0.2, 0.1]).log())
    batch = drawn()
    metrics = updated(algorithm.update(changed(batch, actions=torch.zeros_like(batch.actions)))).metrics
    assert metrics["loss"] == pytest.approx(0.356675, abs=1e-6)
    assert metrics["label_log_prob"] == pytest.approx(-0.356675, abs=1e-6)
    assert metrics["label_disagreement"] == 0.0
    other = updated(algorithm.update(changed(batch, actions=torch.ones_like(batch.actions)))).metrics
    assert other["label_disagreement"] == 1.0


def test_entropy_is_a_bonus() -> None:
    metrics = [updated(learner(entropy_coefficient=c)[1].update(drawn())).metrics for c in (0.0, 0.5)]
    assert metrics[1]["loss"] == pytest.approx(metrics[0]["loss"] - 0.5 * metrics[0]["entropy"])


@pytest.mark.parametrize("actions", ACTIONS.values(), ids=ACTIONS)
def test_labels_become_likelier_and_invalid_records_reach_nothing(actions: ActionSpace) -> None:
    batch = drawn(actions)
    spoilt = torch.where(
        batch.valid.reshape(*batch.valid.shape, *[1] * (batch.actions.ndim - 2)),
        batch.actions,
        torch.nan if isinstance(actions, Continuous) else 0,
    )
    (one, clean), (other, dirty) = learner(actions, learning_rate=1e-2), learner(actions, learning_rate=1e-2)
    losses = [updated(clean.update(batch)).metrics["label_log_prob"] for _ in range(30)]
    for _ in range(30):
        last = updated(dirty.update(changed(batch, actions=spoilt)))
    assert losses[-1] > losses[0]
    assert last.metrics["label_log_prob"] == losses[-1]
    assert torch.equal(parameters(one), parameters(other))


@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
def test_two_trainers_do_what_one_does_with_both_batches(recurrent: Any) -> None:
    batch = drawn(trained=3, burn_in=1 if recurrent else 0, columns=12)
    if recurrent:
        batch = changed(batch, **{f"state.{name}": torch.randn(12, 8) for name in ("h", "c")})
    batch = dataclasses.replace(batch, weights=torch.linspace(0.1, 1.0, 12))
    one, alone = learner(recurrent=recurrent, learning_rate=1e-2)
    expected = updated(alone.update(batch))

    def part(columns: slice) -> Batch:
        assert batch.weights is not None
        fields = {
            name: tensor[columns] if name.startswith("state.") else tensor[:, columns]
            for name, tensor in batch.fields.items()
        }
        return dataclasses.replace(batch, fields=fields, weights=batch.weights[columns])

    shared = SharedSum(2)
    both = [learner(using=context(s, shared), recurrent=recurrent, learning_rate=1e-2) for s in range(2)]
    metrics = finish_together([both[0][1].update(part(slice(0, 5))), both[1][1].update(part(slice(5, 12)))])
    assert metrics[0] == metrics[1] == pytest.approx(expected.metrics, rel=1e-4)
    assert len(shared.sizes) == 1
    torch.testing.assert_close(parameters(both[0][0]), parameters(one), rtol=1e-4, atol=1e-5)


def test_forbidden_choices_are_never_likely() -> None:
    policy, algorithm = learner(masked=True, entropy_coefficient=0.0)
    batch = drawn()
    masks = torch.ones(3, 24, 3, dtype=torch.bool)
    masks[..., 2] = False
    metrics = updated(algorithm.update(changed(batch, actions=batch.actions.clamp(max=1), action_masks=masks))).metrics
    assert metrics["label_log_prob"] > -2 * math.log(2)


def test_update_without_a_valid_record_moves_nothing_and_one_that_diverges_raises() -> None:
    policy, algorithm = learner(learning_rate=1e-2)
    batch = drawn()
    updated(algorithm.update(batch))
    before = parameters(policy).clone()
    updated(algorithm.update(changed(batch, valid=torch.zeros_like(batch.valid))))
    assert torch.equal(parameters(policy), before)
    with pytest.raises(DivergedError, match="loss is nan"):
        updated(algorithm.update(changed(batch, **{"obs.body": batch.observations["body"] * torch.nan})))
    assert torch.equal(parameters(policy), before)


def test_dagger_learns_the_experts_actions_and_not_those_that_were_played() -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [16]})
    rule = dagger.Settings.model_validate({"kind": "dagger", "expert": "teacher", "learning_rate": 1e-2})
    batch = drawn()
    labels = labels_of(ACTIONS["discrete"], 2, 24, seed=5)
    torch.manual_seed(0)
    policy = mlp.build(network, kind({"body": vector(3)}, Discrete(3)), NormalizeSpec())
    taught = dagger.build(rule, policy, context())
    other, cloned = learner(learning_rate=1e-2)
    found = updated(taught.update(changed(batch, **{"out.expert_action": labels})))
    expected = updated(cloned.update(changed(batch, actions=labels)))
    assert found.metrics == expected.metrics
    assert torch.equal(parameters(policy), parameters(other))
    assert rule.needs(policy.kind).expert == "teacher"


def test_beta_falls_with_the_steps_and_is_a_probability() -> None:
    beta = {"start": 1.0, "end": 0.0, "steps": 100}
    rule = dagger.Settings.model_validate({"kind": "dagger", "expert": "e", "beta": beta})
    assert rule.explore(np.arange(2), 2, 25)["expert"].tolist() == [0.75, 0.75]
    assert rule.explore_in_evaluation() == {"expert": 0.0}
    with pytest.raises(ValidationError, match=r"is 1\.5; a probability lies between 0 and 1"):
        dagger.Settings.model_validate({"kind": "dagger", "expert": "e", "beta": 1.5})
