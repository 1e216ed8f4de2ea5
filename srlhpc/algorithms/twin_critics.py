"""Critics that value actions for an actor, with their optimiser and their targets; they stay on trainers.

Letters: N rows, B windows of this trainer, C critics.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Context
from srlhpc.algorithms.objectives import Objective
from srlhpc.algorithms.target_network import TargetNetwork
from srlhpc.algorithms.transitions import Transitions
from srlhpc.policies.contracts import Critics
from srlhpc.rl.critics import critic_errors, critic_loss
from srlhpc.specs.schedule import Schedule


class CriticGradients(NamedTuple):
    """What the gradients of one batch leave."""

    sums: dict[str, Tensor]
    """Over valid records, float32 `[]`: `critic_loss`, the values `q_mean`, the targets `q_target_mean` and the
    absolute errors `td_error`; values and errors are means over critics."""
    feedback: Tensor
    """Mean absolute error of each window, float32 `[B]`."""


class TwinCritics:
    """What trains the critics of a rule; their targets follow when the rule says so.

    Args:
        module: the critics.
        learning_rate: Adam's step size.
        adam_epsilon: Adam's epsilon.
    """

    def __init__(self, module: Critics, learning_rate: Schedule, adam_epsilon: float) -> None:
        self.module = module
        self.objective = Objective("critic", module, learning_rate, adam_epsilon)
        self.target = TargetNetwork(module, self.objective.optimizer)

    def find_gradients(self, rows: Transitions, targets: Tensor, context: Context) -> CriticGradients:
        """Leaves the gradients of the sum of the loss in the optimiser.

        Args:
            rows: what is learnt from.
            targets: what the critics shall predict, float32 `[N]`; any number where a record is not valid.
            context: of the rule.
        """
        with context.arithmetic():
            values = self.module(rows.seen, rows.actions)
        errors = critic_errors(values, targets, rows.valid)
        loss = critic_loss(errors, rows.weights)
        self.objective.differentiate(loss)
        with torch.no_grad():
            sizes = errors.abs().mean(0)
            # Of the values, only those of valid records are added up: an error is their distance from the target.
            valid_targets = torch.where(rows.valid, targets, 0.0).sum()
            sums = {
                "critic_loss": loss.detach(),
                "q_mean": errors.mean(0).sum() + valid_targets,
                "q_target_mean": valid_targets,
                "td_error": sizes.sum(),
            }
            return CriticGradients(sums, rows.means_of_windows(sizes))

    def state(self) -> dict[str, dict[str, Tensor]]:
        """Live tensors of `critics` and `targets`."""
        optimizer = self.objective.optimizer
        return {
            "critics": {"parameters": optimizer.parameters, **optimizer.state()},
            "targets": {"parameters": self.target.parameters},
        }
