"""Many small networks in one product do what each does alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from srlhpc.environment import ActionSpace, ArraySpec, Continuous, Discrete, Kind, MultiDiscrete
from srlhpc.import_path import load_module
from srlhpc.policies.policy import Acted, Policy
from srlhpc.roles.serving.rows import Rows, each
from srlhpc.roles.serving.stacked_networks import FEWEST, Groups, StackedNetworks, act
from srlhpc.specs.action_values import ActionValueHead
from srlhpc.specs.policy import NormalizeSpec

CHOICES = 5


def kind(actions: ActionSpace, *, masks: bool = False) -> Kind:
    observations = {"far": ArraySpec((3,), "float32"), "near": ArraySpec((2,), "uint8")}
    return Kind("agent", ("agent",), observations, actions, has_action_masks=masks)


def network(agents: Kind, *, values: bool = False, normalize: bool = False) -> Any:
    module: Any = load_module("mlp", "srlhpc.policies")
    settings, norm = module.Settings(kind="mlp", hidden=(16, 16)), NormalizeSpec(observations=normalize)
    made = (
        module.build_action_values(settings, agents, norm, ActionValueHead(dueling=True))
        if values
        else module.build(settings, agents, norm)
    )
    for tensor in made.state_dict().values():
        tensor.uniform_(0.1, 1.0)
    return made


def rows_of(count: int, agents: Kind, exploration: Mapping[str, float]) -> Rows:
    masks = torch.rand(count, CHOICES) < 0.6 if agents.has_action_masks else None
    return Rows(
        {"far": torch.randn(count, 3), "near": torch.randint(0, 9, (count, 2)).byte()},
        {},
        torch.zeros(count, dtype=torch.bool),
        masks,
        {name: torch.full((count,), value) for name, value in exploration.items()},
    )


def alone(networks: Mapping[int, Policy], rows: Rows, players: Any, generator: torch.Generator | None) -> list[Acted]:
    return [
        each(act(networks[number], rows.some(torch.tensor([place])), generator), lambda rows: rows[0])
        for place, number in enumerate(players.tolist())
    ]


CASES = {
    "discrete": (kind(Discrete(CHOICES)), {}, {}),
    "masks": (kind(Discrete(CHOICES), masks=True), {}, {}),
    "several parts": (kind(MultiDiscrete((2, 3))), {}, {}),
    "continuous": (kind(Continuous(2)), {}, {}),
    "normalised": (kind(Discrete(CHOICES)), {"normalize": True}, {}),
    "values": (kind(Discrete(CHOICES), masks=True), {"values": True}, {"epsilon": 0.0}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("drawn", [False, True], ids=["most probable", "drawn"])
def test_product_does_what_each_network_does_alone(case: str, drawn: bool) -> None:
    torch.manual_seed(0)
    agents, options, exploration = CASES[case]
    numbers = range(10, 10 + 3 * FEWEST, 3)
    networks = {number: network(agents, **options) for number in numbers}
    stack = StackedNetworks(networks[10], len(networks))
    for number, copy in networks.items():
        stack.put(number, copy)
    players = np.random.default_rng(0).choice(np.array(numbers), 40)
    rows, groups = rows_of(40, agents, exploration), Groups(players)
    generator = torch.Generator().manual_seed(0) if drawn else None
    found = stack.act(rows, groups, generator)
    for place, row in enumerate(groups.order.tolist()):
        expected = each(act(networks[players[row]], rows.some(torch.tensor([row])), None), lambda rows: rows[0])
        name = "value" if "value" in found.outputs else "q_max"
        torch.testing.assert_close(found.outputs[name][place], expected.outputs[name])
        if not drawn:
            torch.testing.assert_close(found.actions[place], expected.actions)
            torch.testing.assert_close(found.log_probs[place], expected.log_probs)
        if rows.action_masks is not None and rows.action_masks[row].any():
            assert rows.action_masks[row, found.actions[place]]


def test_draws_of_the_product_have_the_chances_of_each_network() -> None:
    torch.manual_seed(0)
    agents = kind(Discrete(CHOICES))
    networks = {number: network(agents) for number in range(FEWEST)}
    stack = StackedNetworks(networks[0], FEWEST)
    for number, copy in networks.items():
        copy.policy_head.linear.bias.data = torch.randn(CHOICES)
        stack.put(number, copy)
    times = 4000
    one = rows_of(1, agents, {})
    rows = one.each(lambda tensor: tensor.expand(times * FEWEST, *tensor.shape[1:]))
    groups = Groups(np.repeat(np.arange(FEWEST), times))
    acted = stack.act(rows, groups, torch.Generator().manual_seed(0))
    for number, copy in networks.items():
        chances = copy.evaluate({key: rows[None] for key, rows in one.observations.items()}, {}, one.first[None],
                                action_masks=None).distribution  # fmt: skip
        expected = torch.stack([chances.log_prob(torch.tensor([[choice]]))[0, 0] for choice in range(CHOICES)]).exp()
        mine = acted.actions[number * times : (number + 1) * times]
        shares = torch.bincount(mine, minlength=CHOICES) / times
        # Five standard deviations of a share that is drawn so often.
        assert ((shares - expected).abs() < 5 * (expected * (1 - expected) / times).sqrt() + 1e-6).all()
        torch.testing.assert_close(acted.log_probs[number * times], expected[mine[0]].log())


def test_what_is_drawn_does_not_depend_on_who_was_there_before() -> None:
    torch.manual_seed(0)
    agents = kind(Discrete(CHOICES))
    networks = {number: network(agents) for number in range(3 * FEWEST)}
    new, old = (StackedNetworks(networks[0], FEWEST) for _ in range(2))
    for number in range(3 * FEWEST):
        old.put(number, networks[number])
    chosen = np.random.default_rng(0).permutation(3 * FEWEST)[:FEWEST]
    for number in chosen.tolist():
        new.put(number, networks[number])
    rows, groups = rows_of(4 * FEWEST, agents, {}), Groups(np.repeat(chosen, 4))
    acted = [stack.act(rows, groups, torch.Generator().manual_seed(0)) for stack in (new, old)]
    assert (acted[0].actions == acted[1].actions).all()
    assert (acted[0].log_probs == acted[1].log_probs).all()


def test_copies_act_together_where_they_are_many_and_little_is_padded() -> None:
    assert Groups(np.arange(FEWEST)).are_faster_together
    assert not Groups(np.arange(FEWEST - 1)).are_faster_together
    assert not Groups(np.array([*range(FEWEST), *[0] * FEWEST])).are_faster_together


def test_place_that_is_free_again_holds_the_new_copy() -> None:
    torch.manual_seed(0)
    agents = kind(Discrete(CHOICES))
    networks = {number: network(agents) for number in range(FEWEST + 1)}
    stack = StackedNetworks(networks[0], FEWEST)
    for number in range(FEWEST):
        stack.put(number, networks[number])
    stack.remove(2)
    stack.put(FEWEST, networks[FEWEST])
    players = np.array([0, 1, *range(3, FEWEST + 1)])
    rows = rows_of(FEWEST, agents, {})
    found = stack.act(rows, Groups(players), None)
    expected = alone(networks, rows, players, None)
    assert found.actions.tolist() == [int(acted.actions) for acted in expected]
    torch.testing.assert_close(found.outputs["value"], torch.stack([acted.outputs["value"] for acted in expected]))


def test_rows_are_grouped_by_who_acts_for_them() -> None:
    groups = Groups(np.array([7, 3, 7, 7, 3, 9]))
    assert groups.numbers == [3, 7, 9]
    assert [groups.rows(place).tolist() for place in range(3)] == [[1, 4], [0, 2, 3], [5]]
    assert groups.order.tolist() == [1, 4, 0, 2, 3, 5]
    assert groups.padded().tolist() == [1, 4, 0, 0, 2, 3, 5, 0, 0]
    assert groups.padded()[groups.kept()].tolist() == groups.order.tolist()
