"""The state of a rule as named tensors, and how they are put back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def joined(groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of all groups by `GROUP.NAME`."""
    return {f"{group}.{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}


def part_of(state: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """One part of what `joined` gave."""
    return {name.removeprefix(f"{part}."): tensor for name, tensor in state.items() if name.startswith(f"{part}.")}


def check_fits(live: Mapping[str, Tensor], saved: Mapping[str, Tensor], what: str) -> None:
    """Raises ValueError if names or shapes differ; `what` says whose state it is."""
    found, expected = ({name: tuple(tensor.shape) for name, tensor in of.items()} for of in (saved, live))
    if found != expected:
        raise ValueError(f"{what} has {found}, expected {expected}")


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
    check_fits(live, saved, what)
    for name, tensor in live.items():
        tensor.copy_(saved[name])
