"""What the doctor says of environments that are in order, and of those that are not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from envs import catch, rock_paper_scissors
from envs.vector import Settings, build
from srlhpc.doctor import environment_check, environment_rate
from srlhpc.doctor.environment_check import examine_environment
from srlhpc.doctor.findings import Finding
from srlhpc.doctor.job_environment import examine_job
from srlhpc.environment import Environment, SavedState, Step
from tests.envs import own_vectors
from tests.envs.own_vectors import SavedWalk, Walk
from tests.launch.making_runs import settings

HERE = "tests.envs.own_vectors"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_rate, "_RATE_SECONDS", 0.2)


def told(simulator: type[Any], monkeypatch: pytest.MonkeyPatch, *, normalizes: bool = False) -> dict[str, Finding]:
    """Findings by what they are about."""
    monkeypatch.setattr(own_vectors, "Tried", simulator, raising=False)

    def made(seed: int) -> Environment:
        return build(Settings(factory="vector", simulator=f"{HERE}:Tried"), 4, seed)

    return {finding.what: finding for finding in examine_environment(made, normalizes=normalizes)}


def levels(found: dict[str, Finding]) -> dict[str, str]:
    return {what: finding.level for what, finding in found.items() if finding.level != "ok"}


def test_environment_in_order_has_no_fault_and_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(SavedWalk, monkeypatch)
    assert levels(found) == {}
    assert found["spaces"].found == "agent x 1: place (1,) float32, time (2,) float32 -> one of 2"
    assert "steps/s of 4 environments together" in found["rate"].found
    assert "episodes of random play, of " in found["episodes"].found
    assert "metrics: success" in found["episodes"].found
    assert found["save_state"].found.startswith("goes on exactly; ")


def test_what_cannot_be_saved_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert levels(told(Walk, monkeypatch)) == {"save_state": "warning"}


def other(base: type[Walk] = SavedWalk, **changes: Any) -> type[Walk]:
    return type("Tried", (base,), changes)


def unseeded(self: Walk, seed: int) -> Any:  # noqa: ARG001
    return Walk.reset(self, int(np.random.default_rng().integers(1000)))


def same_for_all(self: Walk, which: Any) -> None:
    self.place[which] = self.random.uniform(-1, 1)
    self.time[which] = 0


def always_the_same(self: Walk, which: Any) -> None:
    self.place[which] = np.linspace(-1, 1, len(self.place))[which]
    self.time[which] = 0


def later(self: Walk, actions: Any) -> Any:
    returned = Walk.step(self, actions)
    return (returned[0], 1000 * returned[1], *returned[2:])


def far(self: Walk) -> Any:
    return {"place": 1e4 * self.place[:, None], "time": Walk.seen(self)["time"]}


def without_rewards(self: Walk, actions: Any) -> Any:
    returned = Walk.step(self, actions)
    return (returned[0], 0 * returned[1], *returned[2:])


def without_ends(self: Walk, actions: Any) -> Any:
    place, *rest = Walk.step(self, actions)
    return place, rest[0], np.zeros(len(self.place), bool), np.zeros(len(self.place), bool)


def not_finite(self: Walk) -> Any:
    return {"place": np.where(self.time[:, None] > 3, np.nan, self.place[:, None]), "time": Walk.seen(self)["time"]}


def half_a_state(self: Walk) -> Any:
    return SavedWalk.save_state(self) | {"place": self.place + 1}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "what", "level", "words"),
    [
        ({"reset": unseeded}, "seeds", "warning", "the same seed gives other numbers"),
        ({"begin": same_for_all}, "seeds", "warning", "all environments of a group begin alike"),
        ({"begin": always_the_same}, "seeds", "warning", "all seeds give the same"),
        ({"seen": far}, "observations", "warning", "agent.place comes to "),
        ({"step": without_rewards}, "rewards", "warning", "all are 0"),
        ({"step": without_ends}, "episodes", "warning", "none ended in "),
        ({"seen": not_finite}, "step 4", "fault", "has a number that is not finite"),
        ({"save_state": half_a_state}, "save_state", "fault", "goes on otherwise"),
        ({"autoreset": None}, "build", "fault", "its autoreset is None"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_words(
    changes: dict[str, Any], what: str, level: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = told(other(**changes), monkeypatch)
    assert (found[what].level, words in found[what].found) == (level, True), found[what].line


def test_large_observations_are_no_matter_where_they_are_normalised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "observations" not in told(other(seen=far), monkeypatch, normalizes=True)


def test_where_equal_seeds_differ_nothing_else_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert levels(told(other(reset=unseeded), monkeypatch)) == {"seeds": "warning"}


def test_episodes_are_no_memory_that_the_environment_takes() -> None:
    environment = rock_paper_scissors.build(rock_paper_scissors.Settings(factory="rock_paper_scissors"), 64, 1)
    tracemalloc.start()
    measured = environment_rate.measure(environment)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert measured.episodes.count > 500
    assert (measured.episodes.shortest, measured.episodes.longest, measured.episodes.mean_return) == (1, 1, 0.0)
    # An episode is some hundred bytes.
    assert grown < 50 * measured.episodes.count


def raises(*_: Any) -> Any:
    raise RuntimeError("the licence has run out")


def raises_late(self: Walk, actions: Any) -> Any:
    self.steps = getattr(self, "steps", 0) + 1
    return raises() if self.steps > 2 * environment_check.STEPS + 400 else Walk.step(self, actions)


@pytest.mark.parametrize(
    ("changes", "what"), [({"save_state": raises}, "save_state"), ({"step": raises_late}, "a later step")]
)
def test_what_an_environment_raises_anywhere_is_told_with_its_line(
    changes: dict[str, Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = list(told(other(**changes), monkeypatch).values())[-1]
    assert (finding.level, finding.what) == ("fault", what)
    assert "test_environment_check.py:" in finding.found
    assert finding.found.endswith("RuntimeError: the licence has run out")


class Heeding(Environment):
    """Takes its actions for its observations, also where they do not count."""

    def __init__(self) -> None:
        self._inner = catch.build(catch.Settings(factory="catch"), 2, 1)
        self.spaces, self.num_environments = self._inner.spaces, 2

    def reset(self, seed: int) -> Step:
        return self._inner.reset(seed)

    def step(self, actions: Any) -> Step:
        step = self._inner.step(actions)
        for kind in step.kinds.values():
            for array in kind.observations.values():
                array += np.float32(actions["agent"].sum() % 97)
        return step

    def save_state(self) -> SavedState | None:
        return None


def test_actions_that_do_not_count_and_change_something_are_a_fault() -> None:
    found = {finding.what: finding for finding in examine_environment(lambda _: Heeding(), normalizes=True)}
    assert found["idle actions"].level == "fault"


class Unready(Heeding):
    """Has nothing to save before it has begun."""

    _place: int | None

    def reset(self, seed: int) -> Step:
        self._place = 0
        return super().reset(seed)

    def step(self, actions: Any) -> Step:
        return self._inner.step(actions)

    def save_state(self) -> SavedState | None:
        return {"place": np.array(self._place)} | dict(self._inner.save_state() or {})

    def load_state(self, state: SavedState) -> Step:
        self._place = int(state["place"])
        return self._inner.load_state(state)


class Late(Unready):
    """Says at first that it offers no states."""

    _place: int | None = None

    def save_state(self) -> SavedState | None:
        return None if self._place is None else super().save_state()


class Early(Late):
    """Says at first that it offers states."""

    def save_state(self) -> SavedState | None:
        return {} if self._place is None else None


@pytest.mark.parametrize(
    ("environment", "words"),
    [(Unready, "AttributeError"), (Late, "gives None, and a state later"), (Early, "gives a state, and None later")],
)
def test_state_is_asked_for_before_the_first_reset(environment: type[Environment], words: str) -> None:
    found = {finding.what: finding for finding in examine_environment(lambda _: environment(), normalizes=True)}
    assert found["save_state before the first reset"].level == "fault"
    assert words in found["save_state before the first reset"].found


def job(tmp_path: Path, environment: dict[str, Any]) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(settings(environment, stop={"updates": 1})))
    return str(path)


def examined(path: str) -> Iterator[Finding]:
    return examine_job(path, ())


def test_environment_of_a_job_is_examined_in_a_process_of_its_own(tmp_path: Path) -> None:
    found = list(examined(job(tmp_path, {"factory": "catch"})))
    assert [finding.what for finding in found[:2]] == ["build", "spaces"]
    assert found[-1].line == "ok       close:              twice does no harm"


def test_environment_that_ends_its_process_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "abrupt.py").write_text(
        "import os\nfrom tests.envs.own_vectors import Walk\n"
        "class Abrupt(Walk):\n"
        "    def step(self, actions):\n        print('no licence', flush=True)\n        os._exit(7)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    *_, last = examined(job(tmp_path, {"factory": "vector", "simulator": "abrupt:Abrupt"}))
    assert last.level == "fault"
    assert last.found == "it ended its process (exit code 7); the last that it wrote: no licence"


FORKING = """
import os, signal, threading
from tests.envs.own_vectors import Walk
class Forking(Walk):
    def __init__(self, num_environments, does="play"):
        super().__init__(num_environments)
        self.does = does
        if os.fork() == 0:
            threading.Event().wait()
    def step(self, actions):
        if self.does == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "hang":
            threading.Event().wait()
        return super().step(actions)
"""


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("play", "twice does no harm"),
        ("die", "it ended its process (signal 9 (SIGKILL))"),
        ("hang", "nothing came of it within 3 s, in "),
    ],
)
def test_processes_that_an_environment_leaves_behind_hold_up_nobody(
    does: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forking.py").write_text(FORKING)
    monkeypatch.syspath_prepend(str(tmp_path))
    environment = {"factory": "vector", "simulator": "forking:Forking", "kwargs": {"does": does}}
    *_, last = examine_job(job(tmp_path, environment), (), 60.0 if does == "play" else 3.0)
    assert words in last.found
    assert last.level == ("ok" if does == "play" else "fault")
    assert does != "hang" or "forking.py:14" in last.found
