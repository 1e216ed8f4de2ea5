"""Turns an agent's named raw observations into what an entity torso takes.

Shape letters: N rows, V size of the own vector, C channels and P places of a ring, K entities and F features of a set,
S all entities of all sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.environment import ArraySpec
from srlhpc.policies.entities.settings import Settings
from srlhpc.policies.layers.observations import Encoder, as_vector
from srlhpc.rl.normalization import SharedMoments
from srlhpc.specs.policy import NormalizeSpec


class EncodedEntities(NamedTuple):
    """What an entity torso takes."""

    own: Tensor
    """float32 `[N, V]`."""
    rings: list[Tensor]
    """float32 `[N, C, P]` each."""
    sets: list[Tensor]
    """float32 `[N, K, F]` each."""
    visible: Tensor
    """bool `[N, 1 + S]`: the agent itself, then the entities of all sets that the actor sees."""
    exists: Tensor
    """The same for the entities that are there at all."""


class EntityShapes(NamedTuple):
    """Sizes of `EncodedEntities`."""

    own: int
    rings: list[tuple[int, int]]
    """C and P."""
    features: list[int]
    """F of each set."""


class EntityEncoder(Encoder):
    """Vectors, rings and sets as the settings name them; masks and other observations are never normalised.

    The entities of a set, the missing ones included, share the moments of their features; every place of a ring has
    its own.

    Args:
        observations: key to array of one agent.
        settings: which keys are what; they were checked.
        normalize: whether and how float observations are normalised.
    """

    def __init__(self, observations: Mapping[str, ArraySpec], settings: Settings, normalize: NormalizeSpec) -> None:
        self._own, self._rings, self._sets = settings.own, tuple(settings.rings), settings.sets
        self._entities = {key: observations[key].shape[0] for key in self._sets}
        super().__init__({key: observations[key] for key in (*self._own, *self._rings, *self._sets)}, normalize)

    def _new_moments(self, normalize: NormalizeSpec) -> SharedMoments:
        features: list[int] = []
        size = 0
        for key in self._float_keys:
            *repeated, last = self._specs[key].shape if key in self._sets else (1, math.prod(self._specs[key].shape))
            features += [*range(size, size + last)] * math.prod(repeated)
            size += last
        return SharedMoments(features, decay=normalize.decay, smallest_std=normalize.smallest_std)

    @property
    def shapes(self) -> EntityShapes:
        """What the torso must take."""
        rings = [self._specs[key].shape for key in self._rings]
        return EntityShapes(
            sum(self._specs[key].shape[0] for key in self._own),
            [(math.prod(shape[:-1]), shape[-1]) for shape in rings],
            [self._specs[key].shape[1] for key in self._sets],
        )

    def forward(self, observations: Mapping[str, Tensor]) -> EncodedEntities:
        arrays = {key: as_vector(self._rows(key, observations[key])) for key in self._specs}
        if self.moments is not None:
            arrays |= self._split(self._normalized(self._floats(observations)))
        own = [arrays[key] for key in self._own]
        exists = [self._mask(observations, key, masks.exists, own[0]) for key, masks in self._sets.items()]
        visible = [
            exists[place] if masks.visible is None else self._mask(observations, key, masks.visible, own[0])
            for place, (key, masks) in enumerate(self._sets.items())
        ]
        itself = torch.ones(len(own[0]), 1, dtype=torch.bool, device=own[0].device)
        return EncodedEntities(
            own[0] if len(own) == 1 else torch.cat(own, dim=1),
            [arrays[key].reshape(len(own[0]), -1, self._specs[key].shape[-1]) for key in self._rings],
            [arrays[key].reshape(len(own[0]), *self._specs[key].shape) for key in self._sets],
            torch.cat([itself, *visible], dim=1),
            torch.cat([itself, *exists], dim=1),
        )

    def _mask(self, observations: Mapping[str, Tensor], key: str, mask: str | None, like: Tensor) -> Tensor:
        if mask is None:
            return torch.ones(len(like), self._entities[key], dtype=torch.bool, device=like.device)
        return observations[mask].reshape(len(like), self._entities[key]).bool()
