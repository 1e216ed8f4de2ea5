"""Whether an environment is what learning takes it for: played at random, looked at step by step, and measured.

Letters: E environments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from srlhpc.doctor.environment_rate import episodes_of, measure, memory, rate
from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.random_play import Seen, differ, keep, random_actions, same, spoil_invalid
from srlhpc.environment import Continuous, Environment, Spaces, Step
from srlhpc.errors import counted
from srlhpc.roles.acting.record_check import RecordCheck
from srlhpc.roles.acting.stack_check import StackCheck
from srlhpc.roles.acting.step_check import StepCheck
from srlhpc.specs.probe_process import told

STEPS = 300
"""Steps of all environments that are kept and compared."""
_MOST_BYTES = 200e6
"""Size of what is kept; with large observations fewer steps are."""
_LARGE = 20.0
"""Numbers beyond which a network had better see normalised ones."""
_CONTRACT = "srlhpc/environment.py says what a step has to be"
_T = TypeVar("_T")
Build = Callable[[int], Environment]
"""A seed to an environment."""


class _Faulty(Exception):
    """A step that is none."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.line)
        self.finding = finding


def examine_environment(build: Build, *, normalizes: bool) -> Iterator[Finding]:
    """Everything that can be told of an environment by playing it at random.

    Args:
        build: makes it.
        normalizes: whether the job's policies normalise observations.
    """
    begun, before = time.monotonic(), memory()
    try:
        environment = build(1)
    except BaseException as error:
        yield fault("build", told(error), "correct it there")
        return
    seconds = time.monotonic() - begun
    yield ok(
        "build",
        f"{counted(environment.num_environments, 'environment')} in {seconds:.1f} s, "
        f"{(memory() - before) / 1e6:,.0f} MB",
    )
    yield ok("spaces", _shown(environment.spaces))
    try:
        yield from _played(build, environment, normalizes)
    except _Faulty as error:
        yield error.finding
        return
    yield _closing(environment)


def _played(build: Build, environment: Environment, normalizes: bool) -> Iterator[Finding]:
    steps = max(20, min(STEPS, int(_MOST_BYTES / _step_bytes(environment))))
    played = list(_play(environment, 7, steps))
    yield ok("records", f"{counted(steps, 'step')} as the contract says: shapes, dtypes, finite numbers, flags, masks")
    yield from _numbers(environment.spaces, played, normalizes)
    repeats = _repeats(build, played)
    yield from _seeds(environment, played, repeats=repeats)
    # Where the same seed gives other numbers anyway, nothing can be told of what changes them.
    if repeats:
        yield _idle_actions(environment, played)
    yield _state(build, environment, steps)
    measured = _called(lambda: measure(environment), "a later step")
    yield from rate(environment, measured)
    yield episodes_of(measured, environment.num_environments)


def _play(environment: Environment, seed: int, steps: int, *, spoilt: bool = False) -> Iterator[Seen]:
    """The step after a reset and those after random actions; as in training each is looked at."""
    looks = _Looks(environment)
    random = np.random.default_rng(0)
    step = _called(lambda: environment.reset(seed), "reset")
    looks.begin(step)
    now = keep(step)
    yield now
    for number in range(steps):
        actions = random_actions(environment.spaces, now, random)
        if spoilt:
            actions = spoil_invalid(environment.spaces, now, actions)
        step = _called(lambda actions=actions: environment.step(actions), f"step {number + 1}")  # type: ignore[misc]
        looks.next(step, number + 1)
        now = keep(step)
        yield now


def _called(call: Callable[[], _T], what: str) -> _T:
    try:
        return call()
    except BaseException as error:
        raise _Faulty(fault(what, told(error), "correct it there")) from None


class _Looks:
    """The checks that actors do."""

    def __init__(self, environment: Environment) -> None:
        self._shape = StepCheck(environment.spaces, environment.num_environments)
        kinds = environment.spaces.kinds
        records = [RecordCheck(kind) for kind in kinds if not kind.takes_turns]
        self._checks: list[RecordCheck | StackCheck] = [*records, *(StackCheck(kind) for kind in kinds if kind.stacks)]

    def begin(self, step: Step) -> None:
        self._look(step, "reset", [check.begin for check in self._checks])

    def next(self, step: Step, number: int) -> None:
        self._look(step, f"step {number}", [*self._checks])

    def _look(self, step: Step, what: str, checks: Sequence[Callable[[Step], None]]) -> None:
        looks: list[Callable[[Step], None]] = [self._shape, *checks]
        try:
            for look in looks:
                look(step)
        except ValueError as error:
            raise _Faulty(fault(what, str(error), _CONTRACT)) from None


# --- what is seen in what was played ---------------------------------------------------------------------------------


def _numbers(spaces: Spaces, played: Sequence[Seen], normalizes: bool) -> Iterator[Finding]:
    rewards = np.concatenate([step.column("rewards").ravel() for step in played[1:]])
    if not rewards.any():
        yield warning("rewards", "all are 0", "random play finds none: is that meant? learning begins where some come")
    else:
        yield ok(
            "rewards", f"from {rewards.min():.4g} to {rewards.max():.4g}, {100 * (rewards != 0).mean():.0f} % not 0"
        )
    large = {
        f"{kind.name}.{key}": most
        for kind in spaces.kinds
        for key, spec in kind.observations.items()
        if spec.dtype.startswith("float") and (most := _most(played, kind.name, key)) > _LARGE
    }
    if large and not normalizes:
        name, most = next(iter(large.items()))
        yield warning(
            "observations",
            f"{name} comes to {most:.4g}",
            "networks learn slowly from such numbers: scale them, or set normalize: {observations: true}",
        )


def _most(played: Sequence[Seen], kind: str, key: str) -> float:
    return max(float(np.abs(step.kinds[kind].observations[key]).max(initial=0.0)) for step in played)


# --- what is compared ------------------------------------------------------------------------------------------------


def _repeats(build: Build, played: Sequence[Seen]) -> bool:
    """Whether another environment plays the same with the same seed."""
    other = _called(lambda: build(2), "build again")
    repeated = all(map(same, played, _play(other, 7, len(played) - 1)))
    _called(other.close, "close")
    return repeated


def _seeds(environment: Environment, played: Sequence[Seen], *, repeats: bool) -> Iterator[Finding]:
    again = list(_play(environment, 8, len(played) - 1))
    differs = differ(played, again)
    # Where the beginning is drawn by the seed, each environment should draw its own.
    together = differ(played[:1], again[:1]) and not any(
        bool((array != array[:1]).any()) for kind in played[0].kinds.values() for array in kind.observations.values()
    )
    if not repeats:
        yield warning(
            "seeds",
            "the same seed gives other numbers",
            "draw all that is random from generators that `reset(seed)` seeds; else no run can be repeated",
        )
    elif not differs:
        yield warning("seeds", "all seeds give the same", "is that meant? every episode of every run is the same then")
    elif together:
        yield warning(
            "seeds",
            "all environments of a group begin alike",
            "seed each by itself, for example by np.random.SeedSequence(seed).spawn(num_environments)",
        )
    else:
        yield ok("seeds", "equal ones repeat exactly, others differ, and so do the environments of a group")


def _idle_actions(environment: Environment, played: Sequence[Seen]) -> Finding:
    """Whether actions of records that do not count change nothing."""
    if all(map(same, played, _play(environment, 7, len(played) - 1, spoilt=True))):
        return ok("idle actions", "what is acted in records that do not count (after an end) changes nothing")
    return fault(
        "idle actions",
        "what is acted in a record that does not count (after an end, or of agents that are not in the game) changes "
        "what follows",
        "ignore actions where `valid` was false: networks write anything there",
    )


class _Resumed(NamedTuple):
    before: Seen
    after: Seen


def _state(build: Build, environment: Environment, steps: int) -> Finding:
    """Whether a saved state goes on exactly."""
    random = np.random.default_rng(0)
    *_, now = _play(environment, 7, min(25, steps))
    saved = _called(environment.save_state, "save_state")
    other = _called(lambda: build(2), "build again")
    early = "save_state before the first reset"
    if (_called(other.save_state, early) is None) != (saved is None):
        given = "a state, and None later" if saved is None else "None, and a state later"
        return fault(early, f"gives {given}", "it says whether states are offered: be consistent")
    if saved is None:
        return warning(
            "save_state",
            "not offered",
            "a resumed serial run then begins new episodes; offer it if runs must go on to the bit",
        )
    state = {name: np.array(array) for name, array in saved.items()}
    try:
        loaded = keep(other.load_state(state))
        pairs = [_Resumed(Seen(now.kinds, ()), loaded)]
        for _ in range(min(50, steps)):
            actions = random_actions(environment.spaces, now, random)
            now, loaded = keep(environment.step(actions)), keep(other.step(actions))
            pairs.append(_Resumed(now, loaded))
    except BaseException as error:
        return fault("save_state", f"what it gave cannot be loaded: {told(error)}", "correct it there")
    _called(other.close, "close")
    if all(same(pair.before, pair.after) for pair in pairs):
        return ok("save_state", f"goes on exactly; {sum(array.nbytes for array in state.values()) / 1e3:,.1f} KB")
    return fault("save_state", "goes on otherwise than what was saved", "save all that what follows depends on")


def _closing(environment: Environment) -> Finding:
    try:
        environment.close()
        environment.close()
    except BaseException as error:
        return fault("close", told(error), "closing twice must do no harm")
    return ok("close", "twice does no harm")


def _shown(spaces: Spaces) -> str:
    """`agent x 2: obs (4,) float32; Discrete 5, masked`, of every kind."""
    return "; ".join(
        f"{kind.name} x {len(kind.agents)}: "
        + ", ".join(f"{key} {spec.shape} {spec.dtype}" for key, spec in kind.observations.items())
        + f" -> {_actions(kind.actions)}"
        + (", masked" if kind.has_action_masks else "")
        for kind in spaces.kinds
    )


def _actions(space: object) -> str:
    if isinstance(space, Continuous):
        return counted(space.size, "real number")
    choices = getattr(space, "choices", "")
    return f"one of {choices}" if isinstance(choices, int) else f"one each of {', '.join(map(str, choices))}"


def _step_bytes(environment: Environment) -> int:
    return sum(
        environment.num_environments * len(kind.agents) * int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize + 64
        for kind in environment.spaces.kinds
        for spec in kind.observations.values()
    )
