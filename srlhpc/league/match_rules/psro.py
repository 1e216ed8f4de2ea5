"""Policy-space response oracles: each side learns against a mixture of the other's versions, which a solver finds from
what versions get against each other (Lanctot et al. 2017, arXiv:1711.00832, algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from srlhpc.league.game import Game, Mixtures
from srlhpc.league.meta_solvers import alpha_rank, nash, regret_matching, uniform
from srlhpc.specs.named_modules import PayoffRuleSettings

_SOLVERS: Mapping[str, Callable[[Game], Mixtures]] = {
    "nash": nash.solve,
    "uniform": uniform.solve,
    "regret_matching": regret_matching.solve,
    "alpha_rank": alpha_rank.solve,
}


class Settings(PayoffRuleSettings):
    """The solver of the game of versions."""

    kind: str = "psro"
    solver: Literal["nash", "uniform", "regret_matching", "alpha_rank"] = "nash"
    """How mixtures are found: nash needs a zero-sum game and scipy, and mixes few versions; uniform is fictitious
    play."""

    @property
    def most_versions(self) -> int | None:
        """Versions of a side: work of alpha_rank grows with their sixth power, and takes seconds here."""
        return 40 if self.solver == "alpha_rank" else None


def mixtures(settings: Settings, game: Game) -> Mixtures:
    """How often each side's versions are met by who learns as the other side."""
    return _SOLVERS[settings.solver](game)
