"""What one update of agents that are learnt from together promises beside learning: `vdn` and `qmix`."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from srlhpc.algorithms import dqn, qmix, vdn
from srlhpc.algorithms.algorithm import Algorithm, Batch, Context
from srlhpc.algorithms.vdn.team import of_team, present, state_size, states
from srlhpc.environment import Continuous, Kind, MultiDiscrete
from srlhpc.errors import UserError
from srlhpc.policies import mlp
from srlhpc.policies.contracts import ActionValuePolicy
from srlhpc.rl.action_choice import greatest
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import SharedSum, changed, context, finish_together, updated
from tests.algorithms.teams import ALONE, MASKED, TEAM, of_copies, team_batch, without_state
from tests.policies.making import kind, vector

RULES = {"vdn": vdn, "qmix": qmix}
LSTM = {"kind": "lstm", "size": 8}


def settings(rule: str, **keys: Any) -> vdn.Settings:
    found: vdn.Settings = RULES[rule].Settings.model_validate({"kind": rule, **keys})
    return found


def learner(
    rule: str, using: Context | None = None, team: Kind = TEAM, *, recurrent: Any = None, **keys: Any
) -> tuple[ActionValuePolicy, Algorithm]:
    """A network whose target differs from it."""
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [16], "activation": "relu", "recurrent": recurrent})
    head = settings(rule, **keys).needs(team).head
    assert head is not None
    policy = mlp.build_action_values(network, team, NormalizeSpec(), head)  # type: ignore[arg-type]
    using = dataclasses.replace(using or context(), joint_agents=len(team.agents))
    algorithm = RULES[rule].build(settings(rule, **keys), policy, using)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return policy, algorithm


def parameters(policy: ActionValuePolicy, algorithm: Algorithm) -> Tensor:
    beside = algorithm.state().get("beside", torch.zeros(0))
    return torch.cat([*(parameter.detach().flatten() for parameter in policy.parameters()), beside])


# --- teams -------------------------------------------------------------------------------------------------------


def flags(valid: list[int], terminated: list[int], truncated: list[int]) -> Batch:
    """One record of one copy."""
    fields = {
        name: torch.tensor(numbers, dtype=torch.bool).reshape(1, 1, -1)
        for name, numbers in {"valid": valid, "terminated": terminated, "truncated": truncated}.items()
    }
    fields["rewards"] = torch.tensor([1.0, 2.0, 4.0]).reshape(1, 1, -1)
    fields["cut"] = torch.zeros(1, 1, dtype=torch.bool)
    return Batch(fields, burn_in_steps=0, version=0, steps=0)


@pytest.mark.parametrize(
    ("batch", "ends"),
    [
        (flags([1, 1, 1], [0, 0, 0], [0, 0, 0]), (True, False, False)),
        (flags([1, 1, 1], [1, 0, 0], [0, 0, 0]), (True, False, False)),
        (flags([1, 1, 1], [1, 1, 1], [0, 0, 0]), (True, True, False)),
        (flags([0, 1, 1], [0, 1, 1], [0, 0, 0]), (True, True, False)),
        (flags([1, 1, 1], [1, 1, 0], [0, 0, 1]), (True, False, True)),
        (flags([0, 0, 0], [0, 0, 0], [0, 0, 0]), (False, False, False)),
    ],
    ids=["goes on", "one leaves", "all end", "the rest end", "one is cut", "nobody"],
)
def test_team_ends_where_all_that_are_left_end_and_is_cut_where_any_is(
    batch: Batch, ends: tuple[bool, bool, bool]
) -> None:
    team = of_team(batch, "sum")
    assert (team.valid.item(), team.terminated.item(), team.truncated.item()) == ends


def test_team_reward_is_that_of_the_agents_in_the_game() -> None:
    batch = changed(flags([1, 0, 1], [0, 0, 0], [0, 0, 0]), rewards=torch.tensor([[[1.0, torch.nan, 4.0]]]))
    assert of_team(batch, "sum").rewards.item() == 5.0
    assert of_team(batch, "mean").rewards.item() == 2.5
    nobody = flags([0, 0, 0], [0, 0, 0], [0, 0, 0])
    assert of_team(nobody, "mean").rewards.item() == 0.0


def test_who_terminated_has_no_value_in_what_is_shown_afterwards() -> None:
    batch = team_batch(records=1, copies=1)
    batch = changed(
        batch,
        alive=torch.ones(2, 1, 3, dtype=torch.bool),
        terminated=torch.tensor([[[True, False, False]]]),
    )
    assert present(batch)[1].tolist() == [[False, True, True]]


def test_state_is_what_the_environment_gives_or_else_all_that_agents_see() -> None:
    batch = team_batch()
    assert torch.equal(states(batch), batch.fields["environment_state"])
    assert state_size(TEAM, 3) == states(batch).shape[-1] == 5
    pixels = torch.full((3, 8, 3, 2), 51, dtype=torch.uint8)
    bare = changed(team_batch(without_state(TEAM)), **{"obs.pixels": pixels})
    seen = states(bare)
    torch.testing.assert_close(seen[..., :9], bare.observations["body"].flatten(2))
    torch.testing.assert_close(seen[..., 9:], torch.full((3, 8, 6), 0.2))
    assert state_size(without_state(TEAM), 3) == 9


# --- updates -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def written_out(policy: ActionValuePolicy, algorithm: Algorithm, batch: Batch, rule: vdn.Settings) -> Tensor:
    """Errors of VDN with one step, copy by copy, `[T, B]`."""
    target = mlp_copy(policy, algorithm.state()["target"])

    def values(network: ActionValuePolicy, t: int, b: int) -> Tensor:
        seen = {key: array[t, b] for key, array in batch.observations.items()}
        masks = None if batch.action_masks is None else batch.action_masks[t, b]
        return network.action_values(seen, {}, batch.first[t, b], action_masks=masks).means

    errors = torch.zeros(batch.cut.shape)
    for t in range(len(batch.cut)):
        for b in range(batch.cut.shape[1]):
            valid = batch.valid[t, b]
            q, following = values(policy, t, b), values(target, t + 1, b)
            masks = None if batch.action_masks is None else batch.action_masks[t + 1, b]
            best = greatest(values(policy, t + 1, b), masks)
            y, whole, is_cut = 0.0, 0.0, bool((batch.truncated[t, b] & valid).any())
            left = [i for i in range(len(valid)) if valid[i] and not batch.terminated[t, b, i]]
            for i in range(len(valid)):
                if valid[i]:
                    y += float(batch.rewards[t, b, i])
                    whole += float(q[i, batch.actions[t, b, i]])
                later = bool(batch.alive[t + 1, b, i]) and not (valid[i] and batch.terminated[t, b, i])
                if later and (left or is_cut):
                    y += rule.gamma * float(following[i, best[i]])
            errors[t, b] = y - whole if valid.any() else 0.0
    return errors


def mlp_copy(policy: ActionValuePolicy, flat: Tensor) -> ActionValuePolicy:
    torch.manual_seed(0)
    network = mlp.Settings.model_validate({"kind": "mlp", "hidden": [16], "activation": "relu"})
    head = settings("vdn").needs(policy.kind).head
    made = mlp.build_action_values(network, policy.kind, NormalizeSpec(), head)  # type: ignore[arg-type]
    torch.nn.utils.vector_to_parameters(flat.clone(), made.parameters())
    return made


@pytest.mark.parametrize("team", [TEAM, MASKED], ids=["free", "masked"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_errors_of_vdn_are_those_of_the_written_out_sum(team: Kind, loss: str) -> None:
    policy, algorithm = learner("vdn", team=team, loss=loss)
    batch = team_batch(team, records=1, copies=40)
    errors = written_out(policy, algorithm, batch, settings("vdn"))
    update = updated(algorithm.update(batch))
    assert update.feedback is not None
    torch.testing.assert_close(update.feedback, errors.abs()[0], rtol=1e-4, atol=1e-5)
    count = int(batch.valid.any(-1).sum())
    losses = (
        0.5 * errors.square()
        if loss == "squared"
        else torch.nn.functional.huber_loss(errors, torch.zeros_like(errors), reduction="none")
    )
    assert update.metrics["loss"] == pytest.approx(float(losses.sum()) / count, rel=1e-4)


@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
def test_a_team_of_one_learns_as_dqn_does(recurrent: Any) -> None:
    keys: dict[str, Any] = {"n_steps": 2, "learning_rate": 1e-2, "dueling": False, "loss": "squared"}
    batch = team_batch(ALONE, records=4, after=1, burn_in_steps=1)
    batch = changed(batch, alive=torch.ones_like(batch.alive))
    state = {f"state.{name}": torch.randn(8, 1, 8) for name in ("h", "c")} if recurrent else {}
    batch = changed(batch, **state)
    policy, algorithm = learner("vdn", team=ALONE, recurrent=recurrent, **keys)
    found = updated(algorithm.update(batch))

    other, alone = learner("vdn", team=ALONE, recurrent=recurrent, **keys)
    rule = dqn.Settings.model_validate({"kind": "dqn", **keys, "adam_epsilon": 1e-5, "target_every_updates": 200})
    target = alone.state()["target"].clone()
    plain = dqn.build(rule, other, context())
    plain.load_state({**plain.state(), "target": target})
    columns = {
        name: tensor.squeeze(1 if name.startswith("state.") else 2)
        for name, tensor in batch.fields.items()
        if name not in ("cut", "environment_state")
    }
    expected = updated(plain.update(dataclasses.replace(batch, fields=columns | {"cut": batch.cut})))
    for name in ("loss", "q_mean", "q_target_mean", "td_error", "gradient_norm"):
        assert found.metrics[name] == pytest.approx(expected.metrics[name], rel=1e-5)
    torch.testing.assert_close(parameters(policy, algorithm), parameters(other, plain), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("recurrent", [None, LSTM], ids=["none", "lstm"])
def test_two_trainers_do_what_one_does_with_both_batches(rule: str, recurrent: Any) -> None:
    keys = {"n_steps": 2, "learning_rate": 1e-2}
    batch = team_batch(records=3, copies=12, after=1, weights=torch.linspace(0.1, 1.0, 12))
    if recurrent:
        batch = changed(batch, **{f"state.{name}": torch.randn(12, 3, 8) for name in ("h", "c")})
    one, alone = learner(rule, recurrent=recurrent, **keys)
    expected = updated(alone.update(batch))
    shared = SharedSum(2)
    both = [learner(rule, context(seed, shared), recurrent=recurrent, **keys) for seed in range(2)]
    parts = of_copies(batch, slice(0, 5)), of_copies(batch, slice(5, 12))
    metrics = finish_together([learned.update(part) for (_, learned), part in zip(both, parts, strict=True)])
    assert metrics[0] == metrics[1]
    assert metrics[0] == pytest.approx(expected.metrics, rel=1e-4)
    assert len(shared.sizes) == 1
    torch.testing.assert_close(parameters(*both[0]), parameters(one, alone), rtol=1e-4, atol=1e-5)
    assert torch.equal(parameters(*both[0]), parameters(*both[1]))


@pytest.mark.parametrize("rule", RULES)
def test_what_is_not_in_the_game_reaches_nothing(rule: str) -> None:
    """Rewards, observations and actions of agents that are not there may be anything."""
    batch = team_batch(without_state(TEAM), records=2, copies=20)
    # Of who is not in the game observations are zeros; here no state is made of them.
    gone = ~batch.alive
    batch = changed(batch, **{"obs.body": torch.where(gone.unsqueeze(-1), 0.0, batch.observations["body"])})
    valid = batch.valid
    spoilt = changed(
        batch,
        rewards=torch.where(valid, batch.rewards, torch.nan),
        actions=torch.where(valid, batch.actions, 0),
        terminated=batch.terminated | ~valid,
    )
    one, other = learner(rule, team=without_state(TEAM)), learner(rule, team=without_state(TEAM))
    first, second = updated(one[1].update(batch)), updated(other[1].update(spoilt))
    assert first.metrics == second.metrics
    assert torch.equal(parameters(*one), parameters(*other))


def test_gradient_reaches_the_mixer_and_its_target_follows() -> None:
    policy, algorithm = learner("qmix", learning_rate=1e-2, target_every_updates=2)
    before = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    updated(algorithm.update(team_batch()))
    state = algorithm.state()
    assert not torch.equal(state["beside"], before["beside"])
    assert torch.equal(state["target"], before["target"])
    updated(algorithm.update(team_batch(version=1)))
    assert torch.equal(state["target"], parameters(policy, algorithm))


@pytest.mark.parametrize("rule", RULES)
def test_resumed_learner_does_what_an_undisturbed_one_does(rule: str) -> None:
    policy, algorithm = learner(rule, learning_rate=1e-2)
    updated(algorithm.update(team_batch()))
    saved = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    acting = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    other, resumed = learner(rule, learning_rate=1e-2)
    other.load_state_dict(acting)
    resumed.load_state(saved)
    for learned in (algorithm, resumed):
        updated(learned.update(team_batch(seed=5, version=1)))
    assert torch.equal(parameters(policy, algorithm), parameters(other, resumed))


def test_state_of_another_mixer_is_refused() -> None:
    _, algorithm = learner("qmix")
    other = learner("qmix", mixer={"embedding": 8})[1]
    with pytest.raises(ValueError, match="^state of the rule has .*, expected "):
        algorithm.load_state(other.state())
    rule = settings("qmix")
    assert rule.form(TEAM) != settings("qmix", mixer={"embedding": 8}).form(TEAM)
    assert rule.form(TEAM) == settings("qmix", learning_rate=1.0).form(TEAM)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("actions", "what"), [(Continuous(2), "continuous actions"), (MultiDiscrete((2, 3)), "several choices at once")]
)
def test_actions_that_are_no_single_choice_are_refused(rule: str, actions: Any, what: str) -> None:
    with pytest.raises(UserError, match=rf"^algorithm {rule} compares the values of single choices.* have {what}; set"):
        settings(rule).needs(kind({"x": vector(2)}, actions))


def test_network_with_a_second_torso_and_unknown_mixers_are_refused() -> None:
    network = mlp.Settings.model_validate({"kind": "mlp", "shared": False})
    with pytest.raises(UserError, match=r"^network\.shared is false, but algorithm qmix trains one head"):
        settings("qmix").check(BatchSpec(fragments=8), network)
    with pytest.raises(ValidationError, match="embedding"):
        settings("qmix", mixer={"embedding": 0})
