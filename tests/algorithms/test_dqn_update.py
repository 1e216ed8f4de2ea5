"""What one DQN update promises beside learning."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from srlhpc.algorithms import dqn
from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError
from srlhpc.environment import ActionSpace, Continuous, Discrete, Kind, MultiDiscrete
from srlhpc.errors import UserError
from srlhpc.policies import mlp
from srlhpc.policies.contracts import ActionValuePolicy
from srlhpc.rl.action_choice import allowed
from srlhpc.rl.td import n_step
from srlhpc.rl.value_rescaling import rescale, unscale
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import OwnSum, SharedSum, changed, context, finish, finish_together, updated
from tests.algorithms.transitions import windows
from tests.policies.making import kind, vector

AGENTS = kind({"body": vector(3)}, Discrete(4))
MASKED = kind({"body": vector(3)}, Discrete(4), masked=True)
PLAIN: dict[str, Any] = {"n_steps": 1, "double": False, "dueling": False, "loss": "squared"}
LSTM = {"kind": "lstm", "size": 8}
HEADS = {
    "means": {},
    "quantiles": {"distribution": {"kind": "quantile", "quantiles": 7}},
    "atoms": {"distribution": {"kind": "categorical", "atoms": 7, "minimum": -3.0, "maximum": 3.0}},
}


def settings(**keys: Any) -> dqn.Settings:
    return dqn.Settings.model_validate({"kind": "dqn", **keys})


def learner(
    using: Context | None = None, agents: Kind = AGENTS, *, recurrent: Any = None, **keys: Any
) -> tuple[ActionValuePolicy, Algorithm]:
    """A network whose target differs from it."""
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [16], "activation": "relu", "recurrent": recurrent})
    policy = mlp.build_action_values(network, agents, NormalizeSpec(), settings(**keys).head)
    using = using or context()
    algorithm = dqn.build(settings(**keys), policy.to(using.device), using)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return policy, algorithm


def drawn(
    agents: Kind = AGENTS, *, trained: int = 1, after: int = 0, burn_in: int = 0, columns: int = 24, seed: int = 0
) -> Batch:
    records = burn_in + trained + after
    batch = windows(agents, records=records, columns=columns, seed=seed, after=after, burn_in_steps=burn_in)
    generator = torch.Generator().manual_seed(seed + 1)
    fields = {"actions": torch.randint(0, 4, (records, columns), generator=generator)}
    fields["cut"] = torch.rand(records, columns, generator=generator) < 0.1
    if agents.has_action_masks:
        fields["action_masks"] = torch.rand(records + 1, columns, 4, generator=generator) < 0.6
    return changed(batch, **fields)


def gradient(policy: ActionValuePolicy) -> Tensor:
    parts = [parameter.grad for parameter in policy.parameters()]
    return torch.cat([part.flatten() for part in parts if part is not None])


def target_of(algorithm: Algorithm, policy: ActionValuePolicy) -> ActionValuePolicy:
    made = copy.deepcopy(policy)
    flat = algorithm.state()["target"]
    torch.nn.utils.vector_to_parameters(flat.clone(), made.parameters())
    return made


def means(policy: ActionValuePolicy, batch: Batch, t: int, b: int) -> Tensor:
    """Values of all actions at one observation, those that are forbidden at minus infinity."""
    seen = {key: array[t, b].unsqueeze(0) for key, array in batch.observations.items()}
    masks = None if batch.action_masks is None else batch.action_masks[t, b].unsqueeze(0)
    found = policy.action_values(seen, {}, batch.first[t, b].unsqueeze(0), action_masks=masks).means[0]
    return found if masks is None else found.masked_fill(~allowed(masks)[0], -torch.inf)


def written_out(policy: ActionValuePolicy, target: ActionValuePolicy, batch: Batch, rule: dqn.Settings) -> Any:
    """Errors of the trained records of windows without memory, record by record: `[T][B]`."""

    def squashed(x: Tensor) -> Tensor:
        return rescale(x) if rule.rescale else x

    def bootstrap(t: int, b: int) -> Tensor:
        told = means(target, batch, t, b)
        chosen = means(policy, batch, t, b) if rule.double else told
        value = told[chosen.argmax()].double()
        return unscale(value) if rule.rescale else value

    def target_at(t: int, b: int, left: int) -> Tensor:
        reward = batch.rewards[t, b].double()
        if batch.terminated[t, b]:
            return reward
        stops = batch.truncated[t, b] or batch.cut[t, b] or t == len(batch.rewards) - 1
        if stops or left == 1:
            return reward + rule.gamma * bootstrap(t + 1, b)
        return reward + rule.gamma * target_at(t + 1, b, left - 1)

    records = range(batch.burn_in_steps, len(batch.rewards) - batch.after)
    errors = []
    for t in records:
        row = []
        for b in range(batch.rewards.shape[1]):
            with torch.no_grad():
                y = squashed(target_at(t, b, rule.n_steps)).float()
            row.append(y - means(policy, batch, t, b)[batch.actions[t, b]])
        errors.append(torch.stack(row))
    return torch.stack(errors)


@pytest.mark.parametrize("agents", [AGENTS, MASKED], ids=["free", "masked"])
@pytest.mark.parametrize(
    "keys",
    [
        PLAIN,
        {"double": True, "dueling": False, "n_steps": 1, "loss": "squared"},
        {"double": True, "dueling": True, "n_steps": 3, "loss": "squared"},
        {"n_steps": 3, "rescale": True, "loss": "squared"},
        {"n_steps": 2, "loss": "huber"},
    ],
    ids=["plain", "double", "all", "rescaled", "huber"],
)
def test_gradient_loss_and_priorities_are_those_of_the_written_out_targets(agents: Kind, keys: dict[str, Any]) -> None:
    policy, algorithm = learner(agents=agents, **keys)
    rule = settings(**keys)
    batch = drawn(agents, trained=2, after=rule.n_steps - 1)
    # Actions that are forbidden are never taken.
    if batch.action_masks is not None:
        batch.fields["actions"] = allowed(batch.action_masks[:-1]).int().argmax(-1)
    reference = copy.deepcopy(policy)
    errors = written_out(reference, target_of(algorithm, policy), batch, rule)
    valid = batch.valid[:2]
    sizes = errors.abs()
    losses = 0.5 * errors.square()
    if rule.loss == "huber":
        losses = torch.where(sizes <= 1, losses, sizes - 0.5)
    loss = losses[valid].mean()
    expected = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(reference.parameters()))])

    update = updated(algorithm.update(batch))
    norm = expected.norm().item()
    expected = expected * min(1.0, 10.0 / norm)
    torch.testing.assert_close(gradient(policy), expected, rtol=1e-3, atol=1e-5)
    assert update.metrics["loss"] == pytest.approx(loss.item(), rel=1e-4)
    assert update.metrics["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    assert update.metrics["td_error"] == pytest.approx(sizes[valid].mean().item(), rel=1e-4)
    assert update.feedback is not None
    for b in range(24):
        mine = sizes[:, b][valid[:, b]]
        priority = (0.9 * mine.max() + 0.1 * mine.mean()).item() if len(mine) else 0.0
        assert update.feedback[b].item() == pytest.approx(priority, rel=1e-4, abs=1e-6)


def test_double_takes_the_targets_value_of_the_networks_choice() -> None:
    policy, algorithm = learner(**{**PLAIN, "double": True, "gamma": 1.0})
    target = target_of(algorithm, policy)
    for network, values in ((policy, [1.0, 3.0, 2.0, 0.0]), (target, [5.0, 1.0, 4.0, 0.0])):
        with torch.no_grad():
            network.get_parameter("head.advantages.weight").zero_()
            network.get_parameter("head.advantages.bias").copy_(torch.tensor(values))
    algorithm.load_state({**algorithm.state(), "target": torch.nn.utils.parameters_to_vector(target.parameters())})
    batch = changed(drawn(columns=1), rewards=torch.zeros(1, 1), actions=torch.zeros(1, 1, dtype=torch.int64))
    no = torch.zeros(1, 1, dtype=torch.bool)
    metrics = finish(algorithm.update(changed(batch, terminated=no, truncated=no, cut=no, valid=~no)))
    assert metrics["q_target_mean"] == 1.0
    assert metrics["q_mean"] == 1.0


def sequences() -> Batch:
    """Windows of 4 records of burn-in, 3 trained ones and one more, from stored states, with resets in both parts."""
    batch = drawn(trained=3, after=1, burn_in=4, columns=6)
    batch.fields["first"][2, :3] = True
    batch.fields["first"][5, 2:4] = True
    return changed(batch, **{f"state.{name}": torch.randn(6, 8) for name in ("h", "c")})


@pytest.mark.parametrize("double", [False, True])
def test_burn_in_warms_up_both_networks_from_the_stored_state(double: bool) -> None:
    batch = sequences()
    policy, algorithm = learner(recurrent=LSTM, n_steps=2, loss="squared", double=double)
    online, target = copy.deepcopy(policy), target_of(algorithm, policy)
    early = {key: array[:4] for key, array in batch.observations.items()}
    late = {key: array[4:] for key, array in batch.observations.items()}
    found = []
    for network in (online, target):
        state = network.warm_up(early, batch.state, batch.first[:4])
        found.append(network.action_values(late, state, batch.first[4:], action_masks=None).means)
    best = found[0 if double else 1].argmax(-1, keepdim=True)
    later = found[1].gather(-1, best).squeeze(-1).detach().double()
    known = slice(4, None)
    steps = n_step(
        batch.rewards[known].double(),
        batch.terminated[known],
        (batch.truncated | batch.cut)[known],
        gamma=0.99,
        n=2,
    )
    places = torch.arange(3).unsqueeze(1) + steps.lengths[:3]
    targets = (steps.sums[:3] + steps.discounts[:3] * later.gather(0, places)).float()
    taken = found[0][:3].gather(-1, batch.actions[4:7].unsqueeze(-1)).squeeze(-1)
    loss = (0.5 * (targets - taken).square())[batch.valid[4:7]].mean()
    expected = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(online.parameters()))])
    update = updated(algorithm.update(batch))
    assert update.metrics["loss"] == pytest.approx(loss.item(), rel=1e-4)
    torch.testing.assert_close(gradient(policy), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_nothing_of_burn_in_is_trained(head: dict[str, Any]) -> None:
    batch = sequences()
    moved = changed(
        batch,
        rewards=torch.cat([batch.rewards[:4] + 100, batch.rewards[4:]]),
        actions=torch.cat([3 - batch.actions[:4], batch.actions[4:]]),
        valid=torch.cat([~batch.valid[:4], batch.valid[4:]]),
    )
    gradients = []
    for used in (batch, moved):
        policy, algorithm = learner(recurrent=LSTM, n_steps=2, **head)
        finish(algorithm.update(used))
        gradients.append(gradient(policy))
    assert torch.equal(gradients[0], gradients[1])
    assert gradients[0].abs().max() > 0


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
def test_two_trainers_do_what_one_does_with_both_batches(head: dict[str, Any], recurrent: Any) -> None:
    keys = {"n_steps": 2, "learning_rate": 1e-2, **head}
    batch = drawn(trained=2, after=1, columns=12)
    if recurrent:
        batch = changed(batch, **{f"state.{name}": torch.randn(12, 8) for name in ("h", "c")})
    batch = replace(batch, weights=torch.linspace(0.1, 1.0, 12))
    one, alone = learner(recurrent=recurrent, **keys)
    expected = updated(alone.update(batch))

    def part(columns: slice) -> Batch:
        assert batch.weights is not None
        fields = {
            name: tensor[columns] if name.startswith("state.") else tensor[:, columns]
            for name, tensor in batch.fields.items()
        }
        return replace(batch, fields=fields, weights=batch.weights[columns])

    shared = SharedSum(2)
    both = [learner(context(seed, shared), recurrent=recurrent, **keys) for seed in range(2)]
    metrics = finish_together([both[0][1].update(part(slice(0, 5))), both[1][1].update(part(slice(5, 12)))])
    assert metrics[0] == metrics[1]
    assert metrics[0] == pytest.approx(expected.metrics, rel=1e-4)
    assert len(shared.sizes) == 1
    for name, tensor in one.state_dict().items():
        torch.testing.assert_close(both[0][0].state_dict()[name], tensor, rtol=1e-4, atol=1e-5)
        assert torch.equal(both[0][0].state_dict()[name], both[1][0].state_dict()[name])


def test_weights_scale_the_loss_of_their_window_and_not_its_priority() -> None:
    batch = drawn(columns=6)
    batch.fields["valid"][:] = True
    gradients, feedback = [], []
    for weights in (None, torch.tensor([1.0, 0, 0, 0, 0, 0]), torch.tensor([0.0, 1, 1, 1, 1, 1])):
        policy, algorithm = learner(**PLAIN, max_gradient_norm=None)
        update = updated(algorithm.update(replace(batch, weights=weights)))
        gradients.append(gradient(policy))
        feedback.append(update.feedback)
    torch.testing.assert_close(gradients[1] + gradients[2], gradients[0])
    assert not torch.equal(gradients[1], gradients[2])
    assert feedback[0] is not None
    assert all(torch.equal(other, feedback[0]) for other in feedback if other is not None)


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_invalid_records_and_those_after_the_trained_ones_are_not_trained(head: dict[str, Any]) -> None:
    batch = drawn(trained=2, after=2, columns=8)
    batch.fields["valid"][:2] = False
    batch.fields["valid"][2:] = True
    policy, algorithm = learner(n_steps=3, **head)
    update = updated(algorithm.update(batch))
    assert gradient(policy).abs().max().item() == 0.0
    assert update.metrics["loss"] == 0.0
    assert update.feedback is not None
    assert update.feedback.tolist() == [0.0] * 8


def test_batch_without_a_valid_record_moves_nothing() -> None:
    policy, algorithm = learner()
    updated(algorithm.update(drawn()))
    before = [parameter.clone() for parameter in policy.parameters()]
    batch = drawn(seed=1)
    updated(algorithm.update(changed(batch, valid=torch.zeros_like(batch.valid))))
    assert all(torch.equal(old, new) for old, new in zip(before, policy.parameters(), strict=True))


@pytest.mark.parametrize(("polyak", "expected"), [(1.0, 3.0), (0.005, 1.01)])
def test_target_moves_after_every_so_many_updates(polyak: float, expected: float) -> None:
    policy, algorithm = learner(**PLAIN, target_every_updates=3, polyak=polyak, learning_rate=0.0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.fill_(3.0)
    state = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    algorithm.load_state({**state, "target": torch.ones_like(state["target"])})
    values = []
    for version in range(3):
        finish(algorithm.update(replace(drawn(), version=version)))
        values.append(algorithm.state()["target"].unique().tolist())
    assert values == [[1.0], [1.0], [pytest.approx(expected)]]


def test_polyak_target_is_the_number_worked_out_by_hand() -> None:
    policy, algorithm = learner(**PLAIN, target_every_updates=1, polyak=0.005, learning_rate=0.0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.fill_(3.0)
    state = dict(algorithm.state())
    algorithm.load_state({**state, "target": torch.ones_like(state["target"])})
    for version in range(3):
        finish(algorithm.update(replace(drawn(), version=version)))
    assert algorithm.state()["target"][0].item() == pytest.approx(1.02985025, abs=1e-6)


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_resumed_learner_does_what_an_undisturbed_one_does(head: dict[str, Any]) -> None:
    keys = {"n_steps": 2, "target_every_updates": 3, "learning_rate": {"start": 1e-2, "end": 0.0, "steps": 100}, **head}
    batches = [replace(drawn(trained=2, after=1, seed=seed), version=seed, steps=10 * seed) for seed in range(8)]
    policy, algorithm = learner(**keys)
    for batch in batches[:4]:
        finish(algorithm.update(batch))
    network = copy.deepcopy(policy.state_dict())
    state = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    whole = [finish(algorithm.update(batch)) for batch in batches[4:]]
    other, resumed = learner(**keys)
    other.load_state_dict(network)
    resumed.load_state(state)
    assert [finish(resumed.update(batch)) for batch in batches[4:]] == whole
    assert all(torch.equal(tensor, policy.state_dict()[name]) for name, tensor in other.state_dict().items())


def test_state_without_a_target_or_of_another_size_is_refused() -> None:
    _, algorithm = learner(**PLAIN)
    state = dict(algorithm.state())
    with pytest.raises(ValueError, match="state of the rule has"):
        algorithm.load_state({name: tensor for name, tensor in state.items() if name != "target"})
    with pytest.raises(ValueError, match="state of the rule has"):
        algorithm.load_state({**state, "target": torch.zeros(3)})


def test_loss_that_is_no_number_changes_nothing() -> None:
    policy, algorithm = learner(**PLAIN)
    before = torch.nn.utils.parameters_to_vector(policy.parameters()).clone()
    batch = drawn()
    batch.fields["valid"][:] = True
    with pytest.raises(DivergedError, match="the loss is nan"):
        updated(algorithm.update(changed(batch, rewards=batch.rewards * math.nan)))
    assert torch.equal(torch.nn.utils.parameters_to_vector(policy.parameters()), before)


def test_update_yields_and_tells_learning_rate_and_mean_exploration() -> None:
    reducer = OwnSum()
    _, algorithm = learner(
        replace(context(reducer=reducer), columns=2), learning_rate={"start": 0.1, "end": 0.0, "steps": 10}
    )
    generator = algorithm.update(replace(drawn(after=2), steps=5))
    next(generator)
    metrics = updated(generator).metrics
    assert reducer.sizes == []
    assert metrics["learning_rate"] == pytest.approx(0.05)
    assert metrics["epsilon"] == pytest.approx((0.4 + 0.4**8) / 2)


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        (Continuous(2), "have continuous actions; set algorithm.kind to sac or ppo"),
        (MultiDiscrete((2, 3)), "have several choices at once; set algorithm.kind to ppo, or let the environment"),
    ],
)
def test_actions_that_are_no_single_choice_are_refused(actions: ActionSpace, text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text)):
        settings().needs(kind(actions=actions))


def test_network_with_a_second_torso_is_refused() -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "shared": False})
    with pytest.raises(UserError, match=r"network\.shared is false, but algorithm dqn trains one head"):
        settings().check(BatchSpec(fragments=1), network)


def test_loss_beside_a_distribution_is_refused() -> None:
    with pytest.raises(ValidationError, match="which has a loss of its own"):
        settings(loss="squared", distribution={"kind": "quantile"})


def test_a_window_needs_the_records_that_its_last_sum_adds_up() -> None:
    needs = settings(n_steps=5).needs(AGENTS)
    assert (needs.data, needs.after, needs.gives_feedback) == ("replay", 4, True)
    assert needs.first_priorities == "srlhpc.algorithms.dqn.priorities:first_priorities"
    assert settings(n_steps=1).needs(AGENTS).first_priorities is None
    assert settings(distribution={"kind": "categorical"}).needs(AGENTS).first_priorities is None
