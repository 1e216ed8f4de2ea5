"""The mixtures that a run's table of payoffs gave round by round, from the table that its last checkpoint holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from srlhpc.import_path import load_module
from srlhpc.league.game import Game
from srlhpc.specs.named_modules import MatchRuleSettings

Shares = dict[int, float]
"""Updates of a version to how often it is met."""


def table_rounds(state: Mapping[str, Any], rule: MatchRuleSettings) -> Iterator[tuple[Shares, Shares]]:
    """Mixtures of both sides after the first versions of each, the second ones, and so on.

    Args:
        state: `matches/payoffs` of a checkpoint. Games of a pairing are all played before its mixture is, and none
            after, so the table of an early round is a part of the last one.
        rule: of the run.
    """
    mixtures = load_module(rule.kind, "srlhpc.league.match_rules", ("mixtures",)).mixtures
    rows, columns = (state[f"players-{side}"].tolist() for side in range(2))
    places = np.ix_(
        [state["rows"].tolist().index(version) for version in rows],
        [state["columns"].tolist().index(version) for version in columns],
    )
    first, second = (means[places] for means in np.asarray(state["means"]))
    for count in range(1, min(len(rows), len(columns)) + 1):
        part = slice(0, count), slice(0, count)
        solved = mixtures(rule, Game(first[part], second[part]))
        yield tuple(  # type: ignore[misc]
            dict(zip(versions[:count], shares.tolist(), strict=True))
            for versions, shares in zip((rows, columns), solved, strict=True)
        )
