"""The experiment spec: what to train, with how many ranks of which role, and until when."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from srlhpc.errors import did_you_mean
from srlhpc.specs.evaluators import EvaluatorsSpec
from srlhpc.specs.matches import MatchesSpec
from srlhpc.specs.named_modules import NamedEnvironment
from srlhpc.specs.policy import PolicySpec
from srlhpc.specs.role_sections import ActorsSpec, PolicyServersSpec, TrainersSpec
from srlhpc.specs.spec import Spec, refusal
from srlhpc.specs.versions import VersionsSpec


class AgentsSpec(Spec):
    """Which agents use which policy."""

    match: str = ".*"
    """Regular expression on the whole agent name."""
    policy: str = "default"
    """Name of a policy of `policies`."""
    train: bool = True
    """Whether these agents' records are trained on."""

    @field_validator("match")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"'{pattern}' is no regular expression: {error}") from None
        return pattern


class StopSpec(Spec):
    """When the run is finished: whichever comes first. At least one must be set."""

    steps: PositiveInt | None = None
    """Trained steps (steps of one environment, counted once however often they are reused)."""
    updates: PositiveInt | None = None
    """Updates of the first policy."""
    return_mean: float | None = None
    """Mean return of the last 100 training episodes, once there are 100."""
    hours: PositiveFloat | None = None
    """Hours of training, over all attempts."""

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if all(limit is None for limit in (self.steps, self.updates, self.return_mean, self.hours)):
            raise ValueError("sets no limit; set at least one of steps, updates, return_mean, hours")
        return self


class CheckpointSpec(Spec):
    """When checkpoints are written and which are kept."""

    every_seconds: PositiveFloat | None = 600.0
    """Seconds between two; null for none; not used by serial runs."""
    every_updates: PositiveInt | None = None
    """Updates of the first policy between two; null for none."""
    keep: PositiveInt = 3
    """Newest files kept."""
    keep_best: NonNegativeInt = 1
    """Best files kept beside those: best by the last evaluation where there are evaluators (with
    `evaluators.opponents` by the win rate), else by the mean return of the last 100 training episodes; before there
    are so many, a file has no score."""


class ExperimentSpec(Spec):
    """One experiment."""

    seed: NonNegativeInt = 1
    """Everything random follows from it."""
    environment: NamedEnvironment
    """The environment; `factory` names its module, the other keys are that module's settings."""
    policies: Annotated[dict[str, PolicySpec], Field(min_length=1)]
    """Policies by name."""
    agents: tuple[AgentsSpec, ...] = (AgentsSpec(),)
    """Which agents use which policy; the first entry that matches counts."""
    actors: ActorsSpec
    """Ranks that step environments."""
    policy_servers: PolicyServersSpec = PolicyServersSpec()
    """Ranks that serve actions."""
    trainers: TrainersSpec = TrainersSpec()
    """Ranks that train."""
    evaluators: EvaluatorsSpec = EvaluatorsSpec()
    """Ranks that evaluate."""
    stop: StopSpec
    """When the run is finished."""
    checkpoint: CheckpointSpec = CheckpointSpec()
    """Checkpoints."""
    versions: VersionsSpec = VersionsSpec()
    """Past parameters that are kept."""
    matches: MatchesSpec | None = None
    """Whom the sides of a game meet while they learn, each entry of `agents` being a side; null: all play as they are
    now, which is self-play."""

    @field_validator("policies")
    @classmethod
    def _check_names(cls, policies: dict[str, PolicySpec]) -> dict[str, PolicySpec]:
        for name in policies:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise refusal("a policy's name may only have letters, digits, '_' and '-'", name)
        return policies

    @model_validator(mode="after")
    def _check_agents(self) -> Self:
        for index, entry in enumerate(self.agents):
            if entry.policy not in self.policies:
                hint = did_you_mean(entry.policy, list(self.policies))
                raise refusal(f"'{entry.policy}' is not in policies{hint}", *("agents", index, "policy"))
        return self

    @model_validator(mode="after")
    def _check_opponents(self) -> Self:
        for index, opponent in enumerate(self.evaluators.opponents or ()):
            if opponent.policy not in self.policies:
                hint = did_you_mean(opponent.policy, list(self.policies))
                raise refusal(
                    f"'{opponent.policy}' is not in policies{hint}", *("evaluators", "opponents", index, "policy")
                )
        return self

    @model_validator(mode="after")
    def _check_tags(self) -> Self:
        for name, updates in self.versions.tags.items():
            if self.stop.updates is not None and updates > self.stop.updates:
                raise refusal(
                    f"is {updates}, and the run ends after stop.updates {self.stop.updates}; lower it, or raise "
                    "stop.updates",
                    *("versions", "tags", name),
                )
        return self
