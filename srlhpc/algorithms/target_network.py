"""A copy of a network that follows it slowly, for the targets of its own learning."""

from __future__ import annotations

import copy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from srlhpc.algorithms.flat_adam import FlatAdam, flattened

_Module = TypeVar("_Module", bound=nn.Module)


class TargetNetwork(Generic[_Module]):
    """A copy of a module with parameters of its own, as one flat vector, that get no gradient.

    Buffers, such as running moments of observations, and parameters that nobody trains are those of the online module
    itself: both networks see an observation alike.

    Args:
        online: the module that it follows.
        optimizer: what trains that module.
    """

    def __init__(self, online: _Module, optimizer: FlatAdam) -> None:
        self.module = copy.deepcopy(online)
        """The copy."""
        for own, theirs in zip(self.module.modules(), online.modules(), strict=True):
            for name, buffer in theirs.named_buffers(recurse=False):
                setattr(own, name, buffer)
            for name, parameter in theirs.named_parameters(recurse=False):
                if not parameter.requires_grad:
                    setattr(own, name, parameter)
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        self.module.requires_grad_(False)
        for parameter in trained:
            parameter.grad = None
        self._online = optimizer.parameters
        self.parameters = flattened(trained)
        """All that follow, flat and live: what belongs into checkpoints."""
        assert self.parameters.shape == self._online.shape

    @torch.no_grad()
    def copy(self) -> None:
        """Makes all parameters those of the online network."""
        self.parameters.copy_(self._online)

    @torch.no_grad()
    def follow(self, polyak: float) -> None:
        """Moves all parameters by a share of their distance (Lillicrap et al. 2016, arXiv:1509.02971, algorithm 1).

        target <- target + polyak * (online - target)
        """
        self.parameters.lerp_(self._online, polyak)

    @torch.no_grad()
    def load(self, parameters: Tensor) -> None:
        """Takes back what `parameters` were.

        Raises:
            ValueError: their number differs.
        """
        if parameters.shape != self.parameters.shape:
            raise ValueError(f"target network has {list(parameters.shape)}, expected {list(self.parameters.shape)}")
        self.parameters.copy_(parameters)
