from __future__ import annotations

import pytest
import torch

from srlhpc.rl.action_choice import allowed, epsilon_greedy, greatest

ROWS = 20_000


def masks(*choices: bool) -> torch.Tensor:
    return torch.tensor(choices).expand(ROWS, -1)


def test_forbidden_actions_are_never_the_greatest() -> None:
    values = torch.tensor([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [-5.0, 9.0, -4.0]])
    free = torch.tensor([[True, True, True], [True, False, True], [True, False, False]])
    assert greatest(values, free).tolist() == [1, 2, 0]
    assert greatest(values, None).tolist() == [1, 1, 1]


def test_row_that_allows_nothing_allows_all() -> None:
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    assert allowed(nothing).tolist() == [[True, True, True]]
    assert greatest(torch.tensor([[1.0, 3.0, 2.0]]), nothing).tolist() == [1]


@pytest.mark.parametrize("free", [None, masks(True, False, True, True)], ids=["all", "masked"])
def test_actions_are_drawn_with_the_probabilities_that_are_told(free: torch.Tensor | None) -> None:
    best = torch.full((ROWS,), 2)
    choice = epsilon_greedy(best, free, torch.full((ROWS,), 0.3), 4, torch.Generator().manual_seed(0))
    count = 4 if free is None else 3
    for action in range(4):
        expected = 0.3 / count + 0.7 * (action == 2)
        taken = choice.actions == action
        if free is not None and action == 1:
            assert not taken.any()
            continue
        assert taken.float().mean().item() == pytest.approx(expected, abs=0.015)
        assert choice.log_probs[taken].exp().mean().item() == pytest.approx(expected, rel=1e-5)


def test_rows_without_exploration_take_the_best_for_certain() -> None:
    best = torch.tensor([1, 0, 1])
    epsilons = torch.tensor([0.0, 0.0, 1.0])
    choice = epsilon_greedy(best, None, epsilons, 2, torch.Generator().manual_seed(1))
    assert choice.actions[:2].tolist() == [1, 0]
    assert choice.log_probs[:2].tolist() == [0.0, 0.0]
    assert choice.log_probs[2].exp().item() == pytest.approx(0.5)
