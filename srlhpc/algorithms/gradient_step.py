"""One step of Adam along the gradient of a mean loss over the records of all trainers."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Reducer, check_finite, sum_together
from srlhpc.algorithms.flat_adam import FlatAdam


def gradient_step(
    total: Tensor,
    count: float,
    *optimizers: FlatAdam,
    reducer: Reducer,
    learning_rate: float,
    max_gradient_norm: float | None,
) -> Generator[None, None, Tensor]:
    """One step, unchecked: the caller goes back if a number turns out not to be finite.

    Args:
        total: scalar with gradient, the sum of the loss over this trainer's valid records.
        count: valid records of all trainers; without any, nothing moves.
        optimizers: of what is trained, no parameter twice.
        reducer: one collective call, if there are several trainers.
        learning_rate: Adam's step size.
        max_gradient_norm: of all gradients together; None: not bounded.

    Returns:
        float32 `[2]`: the mean loss, and the norm of all gradients before clipping.
    """
    # By the valid records of all trainers: the sum of their gradients is then that of the mean loss.
    scaled = total / max(count, 1.0)
    gradients = [optimizer.gradients for optimizer in optimizers]
    for gradient in gradients:
        gradient.zero_()
    torch.autograd.backward(scaled)
    mean = scaled.detach().reshape(1)
    yield from sum_together(reducer, *gradients, mean)
    norms = [gradient.norm() for gradient in gradients]
    norm = norms[0] if len(norms) == 1 else torch.stack(norms).norm()
    # Without a valid record nothing is learnt, though moments of before would move on.
    if count:
        for optimizer in optimizers:
            optimizer.step(learning_rate, norm, max_gradient_norm)
    return torch.cat([mean, norm.reshape(1)])


def check_steps(checks: Sequence[float]) -> None:
    """Looks at what several steps gave, one after the other.

    Raises:
        DivergedError: a mean loss or a norm is not finite.
    """
    for loss, norm in zip(checks[::2], checks[1::2], strict=True):
        check_finite({"loss": loss, "gradient_norm": norm})
