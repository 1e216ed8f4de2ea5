"""Network `entities`: sets of entities with masks, attended to from the agent's own view.

After the entity networks of Baker et al. 2019 (arXiv:1909.07528, appendix B): one embedding per set that also sees the
agent itself, masked residual self-attention, masked mean; circular convolutions over values around the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, PositiveInt, model_validator

from srlhpc.environment import ArraySpec, Kind
from srlhpc.errors import UserError, counted, did_you_mean
from srlhpc.specs.contracts import Offer, action_values, phasic_actor_critic
from srlhpc.specs.named_modules import CRITICS, NetworkSettings
from srlhpc.specs.spec import Spec

if TYPE_CHECKING:
    pass


class Ring(Spec):
    """A convolution over values around the agent, such as a lidar's: the last is the neighbour of the first."""

    channels: PositiveInt = 9
    """Outputs for each place of the ring."""
    kernel: PositiveInt = 3
    """Neighbouring places that one output sees; odd."""

    @model_validator(mode="after")
    def _check_odd(self) -> Self:
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel is {self.kernel}; it must be odd, so that it has a middle")
        return self


class EntitySet(Spec):
    """Masks of a set of entities: observations [entities], 1 = there, 0 = not."""

    visible: str | None = None
    """Key of the mask of entities that the actor sees; null: all that exist."""
    exists: str | None = None
    """Key of the mask of entities that are there at all, which the critic sees; null: all."""


class Settings(NetworkSettings):
    """An entity network."""

    own: Annotated[tuple[str, ...], Field(min_length=1)]
    """Keys of the agent's own vectors."""
    rings: dict[str, Ring] = {}
    """Keys of values around the agent, [places] or [channels, places]."""
    sets: Annotated[dict[str, EntitySet], Field(min_length=1)]
    """Keys of sets of entities, [entities, features]; other observations are not used."""
    width: PositiveInt = 128
    """Numbers that each entity is embedded in."""
    heads: PositiveInt = 4
    """Attention heads; they share the width."""
    features: PositiveInt = 256
    """Units of the last layer before the memory or the heads."""
    shared: bool = False
    """Whether the value is computed from the policy's layers and masks; otherwise the critic has layers and memory of
    its own and sees all entities that exist."""

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width is {self.width}, which {self.heads} heads do not divide")
        return self

    def state_arrays(self) -> dict[str, ArraySpec]:
        own = super().state_arrays()
        return own if self.shared else own | {CRITICS + name: spec for name, spec in own.items()}

    def offers(self, kind: Kind) -> Mapping[str, Offer]:
        return {**super().offers(kind), **phasic_actor_critic(), **action_values(kind)}

    def check(self, kind: Kind) -> None:
        for key in self.own:
            _seen(kind, key, "own", (1,), "a vector [size]")
        for key, ring in self.rings.items():
            places = _seen(kind, key, "rings", (1, 2), "[places] or [channels, places]").shape[-1]
            if places < ring.kernel:
                found = counted(places, "place")
                raise UserError(f"network entities: rings.{key} has {found}, fewer than kernel {ring.kernel}")
        for key, masks in self.sets.items():
            entities = _seen(kind, key, "sets", (2,), "[entities, features]").shape[0]
            for name, mask in (("visible", masks.visible), ("exists", masks.exists)):
                if mask is not None:
                    _check_mask(kind, f"sets.{key}.{name}", mask, key, entities)


def _check_mask(kind: Kind, where: str, mask: str, key: str, entities: int) -> None:
    found = _seen(kind, mask, where, (1,), "a mask [entities]").shape[0]
    if found != entities:
        of = counted(found, "entity", "entities")
        raise UserError(f"network entities: {where} is '{mask}' of {of}, but '{key}' has {entities}")


def _seen(kind: Kind, key: str, where: str, axes: tuple[int, ...], expected: str) -> ArraySpec:
    """The observation of that key; raises UserError if it is missing or has other axes."""
    if key not in kind.observations:
        hint = did_you_mean(key, list(kind.observations))
        raise UserError(f"network entities: {where} names '{key}', which agents of kind '{kind.name}' do not see{hint}")
    spec = kind.observations[key]
    if len(spec.shape) not in axes:
        raise UserError(
            f"network entities: {where} needs {expected}, but observation '{key}' of kind '{kind.name}' has shape "
            f"{list(spec.shape)}"
        )
    return spec
