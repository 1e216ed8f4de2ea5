"""What the head of a network of action values looks like; a rule says it, and a network builds it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from srlhpc.specs.spec import Spec, refusal


class Quantiles(Spec):
    """Quantiles of the return (QR-DQN; Dabney et al. 2018, arXiv:1710.10044); they need no bounds."""

    kind: Literal["quantile"] = "quantile"
    quantiles: PositiveInt = 51
    """How many, at the middles of equal shares of probability."""

    @property
    def parts(self) -> int:
        """Numbers of one action."""
        return self.quantiles


_LARGEST_RETURN = 1e30
"""Bound of atoms; networks compute in float32, whose squares go to 1e38."""


class Atoms(Spec):
    """Probabilities of fixed returns (C51; Bellemare et al. 2017, arXiv:1707.06887)."""

    kind: Literal["categorical"] = "categorical"
    atoms: Annotated[int, Field(ge=2)] = 51
    """How many returns, at equal distances."""
    minimum: float = -10.0
    """The least return; less counts as this. With `rescale`, in rescaled units."""
    maximum: float = 10.0
    """The greatest return; more counts as this."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.minimum >= self.maximum:
            raise refusal(f"is {self.minimum}; it must be less than maximum ({self.maximum})", "minimum")
        for key, bound in (("minimum", self.minimum), ("maximum", self.maximum)):
            if abs(bound) > _LARGEST_RETURN:
                raise refusal(f"is {bound:g}; returns are at most {_LARGEST_RETURN:g} in size (see rescale)", key)
        return self

    @property
    def parts(self) -> int:
        """Numbers of one action."""
        return self.atoms


ReturnDistribution = Annotated[Quantiles | Atoms, Field(discriminator="kind")]


class ActionValueHead(Spec):
    """The head between features and action values (`srlhpc.specs.contracts.Needs.head`)."""

    dueling: bool = False
    """Whether it adds a value and advantages, less the mean of those that are allowed."""
    units: PositiveInt | None = None
    """Units of a hidden layer of each stream, the value's and the advantages'; null: none."""
    distribution: ReturnDistribution | None = None
    """What is told of the return; null: its mean alone."""
