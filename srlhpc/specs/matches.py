"""Whom the sides of a game meet while they learn: themselves as they are, or versions of their past."""

from __future__ import annotations

import math
from typing import Annotated, Self

from annotated_types import Ge, Le
from pydantic import PositiveInt, model_validator

from srlhpc.specs.named_modules import NamedMatchRule
from srlhpc.specs.spec import Spec

_Share = Annotated[float, Ge(0.0), Le(1.0)]
_ROUNDING = 1e-9


class SharesSpec(Spec):
    """Which part of all groups plays what; together 1."""

    self_play: _Share = 0.0
    """Groups in which every side plays as it is now, and all that are trained learn."""
    past: _Share = 1.0
    """Groups in which one side learns, and every other is played by a version of its policy."""

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        if not math.isclose(self.self_play + self.past, 1.0, abs_tol=_ROUNDING):
            raise ValueError(f"sum to {self.self_play + self.past:g}; they must sum to 1")
        return self


class MatchesSpec(Spec):
    """Whom the sides of a game meet, episode by episode; each entry of `agents` is a side."""

    elsewhere = {"opponents": "rule", "sampling": "rule", "pool": "versions.keep"}

    rule: NamedMatchRule
    """How often each version is met; `kind` names its module, the other keys are that module's settings."""
    shares: SharesSpec = SharesSpec()
    """Which part of all groups plays what, rounded to whole groups; `srlhpc spec --plan` shows what came out."""
    resident: PositiveInt = 8
    """Versions of a policy that are met at the same time by the groups of one policy server, which keeps so many
    networks. One after the other is exchanged, so that all are met as often as the rule says in the end."""
    lot: PositiveInt = 64
    """Matches, of one episode each, that are dealt to a group at once."""

    def itself_before(self, group: int) -> int:
        """How many groups with smaller numbers play themselves."""
        return math.floor(group * self.shares.self_play + _ROUNDING)

    def plays_itself(self, group: int) -> bool:
        """Whether a group plays itself; such groups lie evenly among the others."""
        return self.itself_before(group + 1) > self.itself_before(group)
