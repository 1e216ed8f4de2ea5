"""The state of a rule as named tensors, and how they are put back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def joined(groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of all groups by `GROUP.NAME`."""
    return {f"{group}.{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}


@torch.no_grad()
def put_back(live: Mapping[str, Tensor], saved: Mapping[str, Tensor], what: str) -> None:
    """Copies saved tensors into live ones of the same names.

    Args:
        live: what a state consists of now.
        saved: what `live` was.
        what: whose state it is, for messages.

    Raises:
        ValueError: names or shapes differ.
    """
    found, expected = ({name: tuple(tensor.shape) for name, tensor in of.items()} for of in (saved, live))
    if found != expected:
        raise ValueError(f"{what} has {found}, expected {expected}")
    for name, tensor in live.items():
        tensor.copy_(saved[name])
