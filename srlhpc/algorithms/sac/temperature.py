"""The weight of the entropy, a constant or trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from srlhpc.algorithms.flat_adam import FlatAdam
from srlhpc.algorithms.sac.loss import temperature_gradient
from srlhpc.algorithms.sac.settings import Settings


class Temperature:
    """A constant, or the exponential of a number that Adam trains.

    Args:
        settings: of the rule.
        action_size: dimensions of an action.
        device: where it is used.
    """

    def __init__(self, settings: Settings, action_size: int, device: torch.device) -> None:
        self._target = -float(action_size) if settings.target_entropy == "auto" else settings.target_entropy
        self._module = nn.ParameterList()
        self._optimizer: FlatAdam | None = None
        if settings.temperature == "auto":
            self._module.append(nn.Parameter(torch.zeros(1, device=device)))
            self._optimizer = FlatAdam(self._module, epsilon=settings.adam_epsilon)
            self.value = torch.ones(1, device=device)
            """alpha, float32 `[1]`, without gradient."""
        else:
            self.value = torch.full((1,), settings.temperature, device=device)

    def step(self, value: float, mean_log_prob: float, learning_rate: float) -> None:
        """One step of training; a constant stays.

        Args:
            value: the number in `value`, which the caller has on the host already.
            mean_log_prob: mean of log pi(a|s) over the valid records of all trainers.
            learning_rate: Adam's step size.
        """
        if self._optimizer is None:
            return
        gradients = self._optimizer.gradients.fill_(temperature_gradient(value, mean_log_prob, self._target))
        self._optimizer.step(learning_rate, gradients, None)
        torch.exp(self._optimizer.parameters, out=self.value)

    def state(self) -> dict[str, Tensor]:
        """Live tensors of the optimiser, and the logarithm."""
        if self._optimizer is None:
            return {}
        return {"logarithm": self._optimizer.parameters, **self._optimizer.state()}

    def restored(self) -> None:
        """Takes note that what `state` gave was put back."""
        if self._optimizer is not None:
            torch.exp(self._optimizer.parameters, out=self.value)
