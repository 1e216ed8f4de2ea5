"""A rule's state that is made of several parts: names get the part's name before them."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


def joined(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """All parts as one: `part.name` to tensor."""
    return {f"{part}.{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def part_of(state: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """One part of what `joined` gave."""
    return {name.removeprefix(f"{part}."): tensor for name, tensor in state.items() if name.startswith(f"{part}.")}


def check_names(rule: str, state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Raises ValueError if a state is not of the names and shapes of the rule's own."""
    found, expected = ({name: tuple(tensor.shape) for name, tensor in of.items()} for of in (state, own))
    if found != expected:
        raise ValueError(f"state of {rule} has {found}, expected {expected}")
