"""What the head of an actor of continuous actions looks like; a rule says it, and a network builds it."""

from __future__ import annotations

from srlhpc.specs.spec import Spec


class SquashedGaussianHead(Spec):
    """A Gaussian whose mean and standard deviation both depend on the observation, squashed into [-1, 1].

    Exploration may scale the standard deviation by a factor, `noise`.
    """

    log_stds: tuple[float, float] = (-5.0, 2.0)
    """Least and greatest logarithm of the standard deviation before squashing."""


class DeterministicHead(Spec):
    """One action in [-1, 1] for each observation; exploration adds Gaussian noise of the standard deviation `std`."""


ActorHead = SquashedGaussianHead | DeterministicHead
"""With either, exploration draws actions uniformly from [-1, 1] where its `uniform` is 1."""
