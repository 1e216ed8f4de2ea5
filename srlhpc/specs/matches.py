"""Whom the sides of a game meet while they learn: themselves as they are, or versions of their past."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from annotated_types import Ge, Le
from pydantic import PositiveInt, model_validator

from srlhpc.specs.named_modules import NamedMatchRule, PayoffRuleSettings
from srlhpc.specs.spec import Spec

Part = Literal["self_play", "past", "payoffs"]
"""What a group plays."""
_Share = Annotated[float, Ge(0.0), Le(1.0)]
_ROUNDING = 1e-9


class SharesSpec(Spec):
    """Which part of all groups plays what; together 1."""

    self_play: _Share = 0.0
    """Groups in which every side plays as it is now, and all that are trained learn."""
    past: _Share = 1.0
    """Groups in which one side learns, and every other is played by a version of its policy."""
    payoffs: _Share = 0.0
    """Groups in which versions play each other and nobody learns, for rules that need a table of payoffs (psro)."""

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        if not math.isclose(whole := self.self_play + self.past + self.payoffs, 1.0, abs_tol=_ROUNDING):
            raise ValueError(f"sum to {whole:g}; they must sum to 1")
        return self


class MatchesSpec(Spec):
    """Whom the sides of a game meet, episode by episode; each entry of `agents` is a side."""

    elsewhere = {"opponents": "rule", "sampling": "rule", "pool": "versions.keep"}

    rule: NamedMatchRule
    """How often each version is met; `kind` names its module, the other keys are that module's settings."""
    shares: SharesSpec = SharesSpec()
    """Which part of all groups plays what, rounded to whole groups; `srlhpc spec --plan` shows what came out."""
    resident: PositiveInt = 8
    """Versions of a side that a side which learns meets at the same time in the groups of one policy server, which
    keeps so many networks, and two more, for each such pair. One after the other is exchanged, so that all are met as
    often as the rule says in the end."""
    lot: PositiveInt = 64
    """Matches, of one episode each, that are dealt to a group at once."""

    @model_validator(mode="after")
    def _check_payoffs(self) -> Self:
        needed = isinstance(self.rule, PayoffRuleSettings)
        if needed and not (self.shares.payoffs and self.shares.past):
            raise ValueError(
                f"the rule {self.rule.kind} needs groups that learn against versions and groups in which versions play "
                "each other: set shares, for example shares: {past: 0.5, payoffs: 0.5}"
            )
        if self.shares.payoffs and not needed:
            raise ValueError(
                f"shares.payoffs is {self.shares.payoffs:g}, and the rule {self.rule.kind} asks for no payoffs; leave "
                "it out, or take the rule psro"
            )
        return self

    def part_of(self, group: int) -> tuple[Part, int]:
        """What a group plays, and how many groups with smaller numbers play the same.

        Those of each part lie evenly among the others.
        """
        if (measured := _floor((group + 1) * self.shares.payoffs)) > (before := _floor(group * self.shares.payoffs)):
            return "payoffs", measured - 1
        share = self.shares.self_play / (1.0 - self.shares.payoffs)
        place = group - before
        if (itself := _floor((place + 1) * share)) > (before := _floor(place * share)):
            return "self_play", itself - 1
        return "past", place - before


def _floor(groups: float) -> int:
    return math.floor(groups + _ROUNDING)
