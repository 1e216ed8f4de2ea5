"""Whether an environment is what learning takes it for: played at random, looked at step by step, and measured.

Letters: E environments.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.random_play import Seen, differ, keep, random_actions, same, spoil_invalid
from srlhpc.environment import Continuous, Environment, Episode, Spaces, Step
from srlhpc.errors import counted
from srlhpc.roles.acting.record_check import RecordCheck
from srlhpc.roles.acting.stack_check import StackCheck
from srlhpc.roles.acting.step_check import StepCheck
from srlhpc.specs.probe_process import told

STEPS = 300
"""Steps of all environments that are kept and compared."""
_MOST_BYTES = 200e6
"""Size of what is kept; with large observations fewer steps are."""
_RATE_SECONDS = 4.0
_WARM_STEPS = 20
_LARGE = 20.0
"""Numbers beyond which a network had better see normalised ones."""
_LEAK_BYTES = 20e6
_CONTRACT = "srlhpc/environment.py says what a step has to be"
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
    begun, memory = time.monotonic(), _memory()
    try:
        environment = build(1)
    except BaseException as error:
        yield fault("build", told(error), "correct it there")
        return
    seconds = time.monotonic() - begun
    yield ok(
        "build",
        f"{counted(environment.num_environments, 'environment')} in {seconds:.1f} s, "
        f"{(_memory() - memory) / 1e6:,.0f} MB",
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
    yield from _seeds(build, environment, played)
    yield _idle_actions(environment, played)
    yield _state(build, environment, steps)
    measured = _measure(environment)
    yield from _rate(environment, measured)
    yield _episodes(measured, environment.num_environments)


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


def _called(call: Callable[[], Step], what: str) -> Step:
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


def _episodes(measured: _Measured, num_environments: int) -> Finding:
    episodes, steps = measured.episodes, measured.steps // num_environments
    if not episodes:
        return warning(
            "episodes",
            f"none ended in {counted(steps, 'step')} of {counted(num_environments, 'environment')}",
            "is that meant? what stops at a return, and evaluators, need ends: cut long episodes (truncated)",
        )
    lengths = [episode.steps for episode in episodes]
    metrics = sorted({name for episode in episodes for name in episode.metrics})
    metrics_text = f"; metrics: {', '.join(metrics)}" if metrics else ""
    return ok(
        "episodes",
        f"{counted(len(episodes), 'episode')} of random play, of {min(lengths):,} to {max(lengths):,} steps; agents "
        f"were terminated {counted(measured.terminated, 'time')}, truncated {counted(measured.truncated, 'time')}; "
        f"mean return {_mean_return(episodes):.4g}{metrics_text}",
    )


def _mean_return(episodes: Sequence[Episode]) -> float:
    returns = [value for episode in episodes for value in episode.returns.values()]
    return float(np.mean(returns)) if returns else 0.0


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


def _seeds(build: Build, environment: Environment, played: Sequence[Seen]) -> Iterator[Finding]:
    steps = len(played) - 1
    other = _called_to_build(build)
    repeated = all(map(same, played, _play(other, 7, steps)))
    other.close()
    again = list(_play(environment, 8, steps))
    differs = differ(played, again)
    # Where the beginning is drawn by the seed, each environment should draw its own.
    together = differ(played[:1], again[:1]) and not any(
        bool((array != array[:1]).any()) for kind in played[0].kinds.values() for array in kind.observations.values()
    )
    if not repeated:
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


def _called_to_build(build: Build) -> Environment:
    try:
        return build(2)
    except BaseException as error:
        raise _Faulty(
            fault("build", f"a second time: {told(error)}", "several must be possible in a process")
        ) from None


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
    environment.reset(7)
    random = np.random.default_rng(0)
    now = keep(environment.reset(7))
    for _ in range(min(25, steps)):
        now = keep(environment.step(random_actions(environment.spaces, now, random)))
    saved = environment.save_state()
    if saved is None:
        return warning(
            "save_state",
            "not offered",
            "a resumed serial run then begins new episodes; offer it if runs must go on to the bit",
        )
    state = {name: np.array(array) for name, array in saved.items()}
    other = _called_to_build(build)
    try:
        loaded = keep(other.load_state(state))
        pairs = [_Resumed(Seen(now.kinds, ()), loaded)]
        for _ in range(min(50, steps)):
            actions = random_actions(environment.spaces, now, random)
            now, loaded = keep(environment.step(actions)), keep(other.step(actions))
            pairs.append(_Resumed(now, loaded))
    except BaseException as error:
        return fault("save_state", f"what it gave cannot be loaded: {told(error)}", "correct it there")
    finally:
        other.close()
    if all(same(pair.before, pair.after) for pair in pairs):
        return ok("save_state", f"goes on exactly; {sum(array.nbytes for array in state.values()) / 1e3:,.1f} KB")
    return fault("save_state", "goes on otherwise than what was saved", "save all that what follows depends on")


# --- what is measured ------------------------------------------------------------------------------------------------


class _Measured(NamedTuple):
    steps: int
    """Steps of all environments together."""
    wall: float
    """Seconds in `step`."""
    cpu: float
    grown: float
    """Bytes."""
    episodes: list[Episode]
    terminated: int
    truncated: int


def _measure(environment: Environment) -> _Measured:
    """Plays at random for a while."""
    random = np.random.default_rng(1)
    now = environment.reset(1)
    for _ in range(_WARM_STEPS):
        now = environment.step(random_actions(environment.spaces, now, random))
    memory, begun = _memory(), time.monotonic()
    steps, wall, cpu, terminated, truncated = 0, 0.0, 0.0, 0, 0
    episodes: list[Episode] = []
    while time.monotonic() < begun + _RATE_SECONDS:
        actions = random_actions(environment.spaces, now, random)
        at, used = time.perf_counter(), time.process_time()
        now = environment.step(actions)
        wall, cpu = wall + time.perf_counter() - at, cpu + time.process_time() - used
        steps += environment.num_environments
        episodes += now.episodes
        terminated += int(sum(kind.terminated.sum() for kind in now.kinds.values()))
        truncated += int(sum(kind.truncated.sum() for kind in now.kinds.values()))
    return _Measured(steps, wall, cpu, _memory() - memory, episodes, terminated, truncated)


def _rate(environment: Environment, measured: _Measured) -> Iterator[Finding]:
    """Steps a second of one core, and what memory did meanwhile."""
    steps, wall, cpu, grown, *_ = measured
    yield ok(
        "rate",
        f"{steps / wall:,.0f} steps/s of {counted(environment.num_environments, 'environment')} together, "
        f"{1e6 * cpu / steps:,.1f} us of CPU a step; the peak of memory is {_peak() / 1e6:,.0f} MB",
    )
    if cpu > 1.3 * wall:
        yield warning(
            "threads",
            f"it computes on {cpu / wall:.1f} cores",
            "actors have one each: let its libraries use one thread (OMP_NUM_THREADS=1 is set in runs)",
        )
    if grown > _LEAK_BYTES:
        yield warning(
            "memory",
            f"grew by {grown / 1e6:,.0f} MB in {counted(steps, 'step')}",
            "does something keep what it needs no more? a long run would fill the node",
        )


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


def _memory() -> float:
    """Bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
