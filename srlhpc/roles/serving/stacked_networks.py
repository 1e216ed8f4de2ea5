"""Many copies of a small network that act in one product, each for rows of its own.

A network costs its calls more than its arithmetic where rows are few, so V copies are one call with parameters
`[V, ...]` (`torch.func.vmap`), in the order of their numbers, and rows are padded to as many as the busiest copy has.
So what is drawn depends on who acts for which rows alone, as serial runs need that go on from a checkpoint.

Letters: C places, V copies that act, N rows, M rows of the busiest copy.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap

from srlhpc.data.layout import Array
from srlhpc.policies.layers.activations import without_numpy
from srlhpc.policies.policy import Acted, Policy
from srlhpc.roles.serving.rows import Rows, each

FEWEST = 12
"""Copies from which on one product is faster, by benchmarks/many_versions.py: 8 cost the same."""
_MOST_PADDING = 4
"""Rows that are computed for each that is needed, at most."""


class StackedNetworks:
    """Copies of one network by number.

    Args:
        network: what they are copies of; its `act` may be mapped (`Policy.stackable`).
        capacity: C at first; it grows where more copies come.
    """

    def __init__(self, network: Policy, capacity: int) -> None:
        assert network.stackable
        self._one = _Acting(copy.deepcopy(network).requires_grad_(False))
        self._parameters = {
            name: tensor.new_zeros((capacity, *tensor.shape)) for name, tensor in self._one.state_dict().items()
        }
        self._places: dict[int, int] = {}
        self._free = list(range(capacity))[::-1]

    def put(self, number: int, network: Policy) -> None:
        """Takes a copy in."""
        if not self._free:
            self._grow()
        place = self._places[number] = self._free.pop()
        for name, tensor in network.state_dict().items():
            self._parameters[_Acting.PREFIX + name][place].copy_(tensor)

    def _grow(self) -> None:
        places = len(self._places)
        self._parameters = {name: torch.cat([rows, torch.zeros_like(rows)]) for name, rows in self._parameters.items()}
        self._free = list(range(places, 2 * places))[::-1]

    def remove(self, number: int) -> None:
        """Gives the place of a copy free."""
        self._free.append(self._places.pop(number))

    def act(self, rows: Rows, groups: Groups, generator: torch.Generator | None) -> Acted:
        """Each copy acts for its rows.

        Returns:
            What it did, one group of rows after the other.
        """
        places = np.array([self._places[number] for number in groups.numbers])
        device, count, first = rows.first.device, places.size, int(places[0])
        if np.array_equal(places, np.arange(first, first + count)):
            # Nothing has to be moved.
            stack: slice | Tensor = slice(first, first + count)
        else:
            stack = torch.from_numpy(places).to(device)
        shape = (count, groups.most)
        padded = torch.from_numpy(groups.padded()).to(device)
        parameters = {name: tensor[stack] for name, tensor in self._parameters.items()}
        by_copy = rows.some(padded).each(lambda tensor: tensor.reshape(*shape, *tensor.shape[1:]))

        def act_one(parameters: dict[str, Tensor], *parts: Any) -> Any:
            return functional_call(self._one, parameters, (Rows(*parts), generator))

        with without_numpy():
            axes = (None if part is None else 0 for part in by_copy)
            acted: Acted = vmap(act_one, in_dims=(0, *axes), randomness="different")(parameters, *by_copy)
        kept = torch.from_numpy(groups.kept()).to(device)
        return each(acted, lambda tensor: tensor.flatten(0, 1)[kept])


class _Acting(nn.Module):
    """A policy whose call is `act`."""

    PREFIX = "policy."

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, rows: Rows, generator: torch.Generator | None) -> Acted:
        return act(self.policy, rows, generator)


def act(policy: Policy, rows: Rows, generator: torch.Generator | None) -> Acted:
    """One policy acts for all rows."""
    return policy.act(
        rows.observations,
        rows.state,
        rows.first,
        action_masks=rows.action_masks,
        generator=generator,
        exploration=rows.exploration,
    )


class Groups:
    """Rows by who acts for them.

    Args:
        players: number of who acts for each row, `[N]`.
    """

    def __init__(self, players: Array) -> None:
        self.order: NDArray[np.int64] = np.argsort(players, kind="stable")
        """Rows, those of one number side by side."""
        found, self._counts = np.unique(players, return_counts=True)
        self.numbers: list[int] = found.tolist()
        """V numbers."""
        self._begins = np.cumsum(self._counts) - self._counts

    @property
    def are_faster_together(self) -> bool:
        """Whether copies act for them in one product faster than one after the other."""
        many = len(self.numbers)
        return many >= FEWEST and many * self.most <= _MOST_PADDING * self.order.size

    @property
    def most(self) -> int:
        """M."""
        return int(self._counts.max())

    def rows(self, place: int) -> NDArray[np.int64]:
        """The rows of a number."""
        begin = self._begins[place]
        return self.order[begin : begin + self._counts[place]]

    def padded(self) -> NDArray[np.int64]:
        """Rows of all numbers, `[V x M]`; what is lacking is the first row of all."""
        rows = np.zeros(len(self.numbers) * self.most, np.int64)
        rows[self.kept()] = self.order
        return rows

    def kept(self) -> NDArray[np.int64]:
        """Where the rows of `order` are in `padded`, `[N]`."""
        within = np.arange(self.order.size) - np.repeat(self._begins, self._counts)
        return np.asarray(np.repeat(np.arange(len(self.numbers)) * self.most, self._counts) + within)
