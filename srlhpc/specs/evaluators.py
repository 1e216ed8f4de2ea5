"""The section of an experiment on evaluators: what they play, and against whom."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from srlhpc.specs.spec import Spec

LIVE, ALL_VERSIONS = "live", "versions"
"""Words for what plays, beside tags of `versions`: the policy as it is now, and each version that is kept then."""
VersionWord = Annotated[str, Field(min_length=1)]


class OpponentSpec(Spec):
    """Who plays the other sides."""

    policy: str
    """Name of a policy of `policies`: one that plays there, or one that plays no agents and has `weights_from`."""
    version: VersionWord = LIVE
    """`live`, as it is now; a tag of `versions`; or `versions`: each that is kept then, one after the other."""


class EvaluatorsSpec(Spec):
    """Ranks that measure the policy with deterministic actions and frozen weights."""

    ranks: NonNegativeInt = 0
    """Evaluator ranks."""
    episodes: PositiveInt = 20
    """Episodes of one round, exactly, per evaluator; with `opponents` so many of each side against each of them."""
    environments: PositiveInt = 4
    """Environments stepped as one vector."""
    every_updates: PositiveInt = 50
    """Updates of the first policy between two rounds."""
    max_episode_steps: PositiveInt = 30_000
    """An episode that has not ended after so many steps is given up, with those that its environment still had to play,
    and the round has no mean return; also in `srlhpc eval`. Atari's longest have 27,000."""
    draw_actions: bool = False
    """Actions are drawn as the policy weighs them, not the most probable ones: where best play is a mixture, or all
    episodes begin alike. It changes no rule that says how it acts in evaluation, such as dqn."""
    players: Annotated[tuple[VersionWord, ...], Field(min_length=1)] = (LIVE,)
    """What is measured against `opponents`: `live`, tags of `versions`, or `versions`. Two versions meet in one round
    only."""
    opponents: Annotated[tuple[OpponentSpec, ...], Field(min_length=1)] | None = None
    """Each side, an entry of `agents`, is measured while these play all others; null: all sides play as they are."""

    @model_validator(mode="after")
    def _check_players(self) -> Self:
        if self.opponents is None and self.players != (LIVE,):
            raise ValueError(
                "players are measured against opponents, and there are none: set opponents, for example "
                "opponents: [{policy: default, version: versions}], or leave players out"
            )
        return self
