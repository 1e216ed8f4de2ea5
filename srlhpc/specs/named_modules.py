"""What the modules that a spec names must offer as `Settings`; none of this loads torch or a simulator."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from annotated_types import Gt, Le
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PositiveInt, SerializeAsAny, model_validator

from srlhpc.environment import ArraySpec, FloatArray, Kind, Spaces
from srlhpc.errors import UserError
from srlhpc.import_path import load_module
from srlhpc.specs.contracts import ACTOR_CRITIC, VALUE_OUTPUT, Needs, Offer
from srlhpc.specs.problems import shown
from srlhpc.specs.schedule import LinearSchedule
from srlhpc.specs.spec import Spec, refusal

if TYPE_CHECKING:
    from srlhpc.specs.batch import BatchSpec


@dataclass(frozen=True)
class Panel:
    """Statistics of episodes that are drawn over each other, one panel of `srlhpc plot --statistics`."""

    title: str
    unit: str
    """Label of the vertical axis: what is measured, and in what."""
    statistics: Mapping[str, str]
    """Name of a statistic, as in `srlhpc.environment.Episode.metrics`, to the label of its line."""


class EnvironmentSettings(Spec):
    """Base of the `Settings` of an environment module.

    The module's `build(settings, num_environments, seed, render=False)` makes an `srlhpc.environment.Environment` of so
    many environments; with `render`, one whose `render()` draws.
    """

    requires: ClassVar[dict[str, str]] = {}
    """Optional packages that `build` imports: import name to the extra that installs it."""

    factory: str
    """Import path of the environment's module; a bare name is a module of `envs`."""

    def spaces(self) -> Spaces | None:
        """The spaces where they follow from the settings alone; None: ask a built environment (in a subprocess)."""
        return None

    def statistics(self) -> Sequence[Panel]:
        """What `srlhpc plot --statistics` draws, from top to bottom; empty: a panel for every statistic of an episode.

        A statistic that the episodes of these settings never have may be named; it is left out.
        """
        return ()


class Lstm(Spec):
    """A long short-term memory between torso and heads."""

    kind: Literal["lstm"] = "lstm"
    size: PositiveInt = 128
    """Units of the hidden state."""

    def arrays(self) -> dict[str, ArraySpec]:
        return {"h": ArraySpec((self.size,), "float32"), "c": ArraySpec((self.size,), "float32")}


class Gru(Spec):
    """A gated recurrent unit between torso and heads."""

    kind: Literal["gru"] = "gru"
    size: PositiveInt = 128
    """Units of the hidden state."""

    def arrays(self) -> dict[str, ArraySpec]:
        return {"h": ArraySpec((self.size,), "float32")}


Recurrent = Annotated[Lstm | Gru, Field(discriminator="kind")]


CRITICS = "value_"
"""Prefix of the names of a recurrent state that only the critic has."""


class NetworkSettings(Spec):
    """Base of the `Settings` of a network module in `srlhpc.policies` or elsewhere.

    The module's `build(settings, kind, normalize)` makes an `srlhpc.policies.policy.Policy` for one
    `srlhpc.environment.Kind`.
    """

    not_in_checkpoints: ClassVar[tuple[str, ...]] = ("initial_log_std",)
    """Settings that may change when a run goes on: the arrays of a checkpoint fit all the same."""

    kind: str
    """Import path of the network's module; a bare name is a module of `srlhpc.policies`."""
    recurrent: Recurrent | None = None
    """Memory between torso and heads; null for none."""
    initial_log_std: float = 0.0
    """Logarithm of the standard deviation that continuous actions start with; actions are clipped to [-1, 1]."""

    def state_arrays(self) -> dict[str, ArraySpec]:
        """Recurrent state of one agent; empty without memory."""
        return self.recurrent.arrays() if self.recurrent else {}

    def offers(self, kind: Kind) -> Mapping[str, Offer]:  # noqa: ARG002
        """What the network can be trained as, by agents of this kind: name of a contract to what it gives under it.

        A rule that trains the network chooses which of the outputs travel with its records.
        """
        return {ACTOR_CRITIC: Offer(VALUE_OUTPUT)}

    def check(self, kind: Kind) -> None:
        """Raises UserError if the network cannot serve agents of this kind."""


_LARGEST = float(np.finfo(np.float32).max)


class AlgorithmSettings(Spec):
    """Base of the `Settings` of an algorithm package in `srlhpc.algorithms` or elsewhere.

    The module's `build(settings, policy, context)` makes an `srlhpc.algorithms.algorithm.Algorithm`.
    """

    kind: str
    """Import path of the algorithm's module; a bare name is a module of `srlhpc.algorithms`."""

    @model_validator(mode="after")
    def _check_float32(self) -> Self:
        # Rules compute in float32, which takes such a number for infinity, or refuses it in the first update.
        for name, value in self:
            ends = (value.start, value.end) if isinstance(value, LinearSchedule) else (value,)
            for end in ends:
                if isinstance(end, float) and abs(end) > _LARGEST:
                    raise refusal(f"is {end:g}; it must be at most {_LARGEST:g}, the largest number of float32", name)
        return self

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        """What the rule needs of a network, and of every record of an agent of this kind."""
        raise UserError(
            f"algorithm {self.kind} does not say which networks it trains; its Settings must define "
            "`needs(kind)`, which returns a srlhpc.specs.contracts.Needs"
        )

    def form(self, kind: Kind) -> object:
        """What decides which arrays the network and the rule's state have, to be compared by ==.

        A run goes on from a checkpoint only with settings of the same form.
        """
        return self.needs(kind).head

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:  # noqa: ARG002
        """How acting explores in training: name to float32 `[len(columns)]`, one number for each column.

        A pure function, so that policy servers work it out alone, and equally after a resume. A column is an agent of
        one environment of one group.

        Args:
            columns: numbers of some columns in the plan, from 0.
            total: columns of the policy in the plan.
            steps: trained steps of the policy so far.
        """
        return {}

    def explore_in_evaluation(self) -> Mapping[str, float]:
        """The same numbers for whoever acts without being trained: evaluators, `srlhpc eval` and frozen policies."""
        return {}

    def kept_bytes(self, batch: Mapping[str, ArraySpec]) -> int:  # noqa: ARG002
        """Bytes of host memory in which the rule keeps what it takes of its batches, on each trainer.

        Args:
            batch: all arrays of a trainer's batch, by name.
        """
        return 0

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:
        """Raises UserError if the algorithm cannot learn from such batches with such a network."""


class MatchRuleSettings(Spec):
    """Base of the `Settings` of a module in `srlhpc.league.match_rules` or elsewhere that chooses past opponents."""

    kind: str
    """Import path of the rule's module; a bare name is a module of `srlhpc.league.match_rules`."""


class WinRateRuleSettings(MatchRuleSettings):
    """Base of the `Settings` of a match rule that decides by win rates.

    The module's `chances(settings, win_rates)` is given how often the learner beats each of N versions, float64 `[N]`,
    oldest first, and returns how often it shall meet each, float64 `[N]` of sum 1.
    """

    decay: Annotated[float, Gt(0.0), Le(1.0)] = 0.99
    """What a game counts in win rates after one more game against the same version; 1: all count alike."""


class PayoffRuleSettings(MatchRuleSettings):
    """Base of the `Settings` of a match rule that decides by what every version gets against every other.

    The module has no `chances`, but `mixtures(settings, game)`: a `srlhpc.league.game.Game` of the versions to how
    often each side's are met by who learns as the other, `srlhpc.league.game.Mixtures`.
    """

    episodes: PositiveInt = 1000
    """Games of every pairing of versions, before the newer of the two is met. A mean of returns of ±1 then has a
    standard error of 1 / sqrt(episodes): 0.03 of 1,000."""

    @property
    def most_versions(self) -> int | None:
        """Versions of each side that `mixtures` takes in the time in which a run may stand still; None: any number."""
        return None


_S = TypeVar("_S", bound=Spec)


def _from_module(
    base: type[_S],
    key: str,
    package: str,
    by_place: Sequence[str],
    by_name: Sequence[str] = (),
    function: str = "build",
    instead: Callable[[type[Spec]], tuple[str, Sequence[str]] | None] = lambda _: None,
) -> Callable[[Any], Any]:
    """Reads the settings with the module that they name, whose function is called with such arguments.

    `instead` names another function and its arguments for some `Settings`.
    """

    def resolve(data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        name = data.get(key)
        if not isinstance(name, str):
            raise (
                refusal(f"is {shown(name)}; it must name a module.", key)
                if key in data
                else refusal("is missing.", key)
            )
        try:
            module = load_module(name, package, ("Settings",))
            if not issubclass(module.Settings, base):
                raise refusal(f"{name} is no {_words(base)} module", key)
            called, arguments = instead(module.Settings) or (function, by_place)
            module = load_module(name, package, ("Settings", called))
        except UserError as error:
            raise refusal(str(error), key) from None
        if wrong := _wrong_call(module, called, arguments, by_name):
            raise refusal(f"{name}.{wrong}", key)
        return module.Settings.model_validate(data)

    return resolve


def _words(base: type[Spec]) -> str:
    """`match rule` of `MatchRuleSettings`."""
    return " ".join(re.findall("[A-Z][a-z]+", base.__name__.removesuffix("Settings"))).lower()


def _wrong_call(module: Any, name: str, by_place: Sequence[str], by_name: Sequence[str]) -> str | None:
    """Why it cannot be called so: told here, because the ranks that call it may have to wait for nodes."""
    function = getattr(module, name)
    call = ", ".join([*by_place, *(f"{key}=..." for key in by_name)])
    if not callable(function):
        return f"{name} is {shown(function)}; it must be a function, called as {name}({call})"
    try:
        signature = inspect.signature(function)
    except ValueError:  # some classes and functions of C do not tell
        return None
    try:
        signature.bind(*by_place, **dict.fromkeys(by_name))
    except TypeError as error:
        return (
            f"{name} takes ({', '.join(map(str, signature.parameters))}) and is called as {name}({call}): {error}; "
            "correct its parameters"
        )
    return None


NamedEnvironment = Annotated[
    SerializeAsAny[EnvironmentSettings],
    BeforeValidator(
        _from_module(EnvironmentSettings, "factory", "envs", ["settings"], ["num_environments", "seed", "render"])
    ),
]
NamedNetwork = Annotated[
    SerializeAsAny[NetworkSettings],
    BeforeValidator(_from_module(NetworkSettings, "kind", "srlhpc.policies", ["settings", "kind", "normalize"])),
]
NamedAlgorithm = Annotated[
    SerializeAsAny[AlgorithmSettings],
    BeforeValidator(_from_module(AlgorithmSettings, "kind", "srlhpc.algorithms", ["settings", "policy", "context"])),
]
NamedMatchRule = Annotated[
    SerializeAsAny[MatchRuleSettings],
    BeforeValidator(
        _from_module(
            MatchRuleSettings,
            "kind",
            "srlhpc.league.match_rules",
            ["settings", "win_rates"],
            function="chances",
            instead=lambda found: ("mixtures", ["settings", "game"]) if issubclass(found, PayoffRuleSettings) else None,
        )
    ),
]
