"""Adam on all parameters as one flat vector: one kernel, one norm, one all-reduce, one copy to restore."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from srlhpc.algorithms.named_tensors import put_back

_SMALLEST = {"adam.exp_avg": 1e-24, "adam.exp_avg_sq": 1e-36}
"""Moments below count as 0."""
_STEPS_BETWEEN = 64
"""After so many steps small moments become 0; meanwhile none becomes subnormal."""


class Snapshot(NamedTuple):
    """Parameters and optimiser state at one moment."""

    parameters: Tensor
    state: dict[str, Tensor]


def flattened(parameters: Sequence[nn.Parameter]) -> Tensor:
    """One vector `[P]` of which all the parameters become views, in their order; no gradient goes to it."""
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
    parts = torch.split(flat, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.data = part.view(parameter.shape)
    return flat


class FlatAdam:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980) with clipping by the global gradient norm.

    The module's parameters and gradients become views of two flat float32 vectors on the module's device; move the
    module there before, and never after.

    Args:
        module: what is trained.
        epsilon: added to the root of the second moment.
        weight_decay: L2 penalty; this times the parameters is added to the (clipped) gradients.
    """

    def __init__(self, module: nn.Module, *, epsilon: float, weight_decay: float = 0.0) -> None:
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        flat = flattened(parameters)
        self.parameters = flat
        """All parameters, flat and live."""
        self.gradients = torch.zeros_like(flat)
        """All gradients, flat; `zero_` before and `backward` into it."""
        parts = torch.split(self.gradients, [parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view(parameter.shape)
        self._begin(epsilon, weight_decay)

    def _begin(self, epsilon: float, weight_decay: float) -> None:
        self._epsilon, self._weight_decay = epsilon, weight_decay
        self._steps = torch.zeros((), dtype=torch.float32, device=self.parameters.device)
        self._first_moment = torch.zeros_like(self.parameters)
        self._second_moment = torch.zeros_like(self.parameters)

    def twin(self, *, epsilon: float, weight_decay: float = 0.0) -> FlatAdam:
        """Another Adam, with moments of its own, on the same parameters and gradients."""
        twin = copy.copy(self)
        twin._begin(epsilon, weight_decay)
        return twin

    @torch.no_grad()
    def step(self, learning_rate: float, gradient_norm: Tensor, max_gradient_norm: float | None) -> None:
        """One step along `gradients`, scaled down if their norm, `[]`, is above the maximum (None: never)."""
        if max_gradient_norm is not None:
            self._clip(gradient_norm, max_gradient_norm)
        # The class torch.optim.Adam loads torch's compiler: 70 MB and a second that its functional form does not cost.
        adam(
            [self.parameters],
            [self.gradients],
            [self._first_moment],
            [self._second_moment],
            max_exp_avg_sqs=[],
            state_steps=[self._steps],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=learning_rate,
            weight_decay=self._weight_decay,
            eps=self._epsilon,
            maximize=False,
        )

        if self.parameters.device.type == "cpu" and int(self._steps) % _STEPS_BETWEEN == 0:
            self._drop_small_moments()

    def _drop_small_moments(self) -> None:
        """Sets moments to 0 before they are subnormal, when each would cost a processor as much as a hundred others.

        Those of what has no gradient any more, as of units that are never active, shrink by a tenth a step.
        """
        for name, smallest in _SMALLEST.items():
            moment = self.state()[name]
            moment.masked_fill_(moment.abs() < smallest, 0.0)

    def _clip(self, norm: Tensor, most: float) -> None:
        if norm.device.type == "cpu":
            number = norm.item()
            if number > most:
                self.gradients.mul_(most / number)
        else:
            # To look at the number would wait for the device: all gradients are multiplied, mostly by 1.
            self.gradients.mul_((most / norm).clamp_(max=1.0))

    def state(self) -> dict[str, Tensor]:
        """The live moments and step count."""
        return {
            "adam.step": self._steps,
            "adam.exp_avg": self._first_moment,
            "adam.exp_avg_sq": self._second_moment,
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Copies what `state` gave into the optimiser.

        Raises:
            ValueError: names or shapes differ.
        """
        put_back(self.state(), state, "optimiser state")

    def snapshot(self) -> Snapshot:
        """A copy of parameters and state."""
        return Snapshot(self.parameters.clone(), {name: t.clone() for name, t in self.state().items()})

    @torch.no_grad()
    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot."""
        self.parameters.copy_(snapshot.parameters)
        self.load_state(snapshot.state)
