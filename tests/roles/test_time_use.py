"""What roles spend their time on, on a clock that a test moves."""

from __future__ import annotations

import pytest

from envs.synthetic import Settings, build
from srlhpc.roles.coordinating.live_timing import LiveTiming
from srlhpc.roles.time_use import TimeUse, shares
from tests.roles.playing import Play
from tests.roles.training.trainer_setup import BLOCKS, Training


class Clock:
    """Moves when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_every_second_is_in_one_part() -> None:
    clock = Clock()
    time_use = TimeUse(clock)
    for seconds, part in ((1, "input"), (2, "computing"), (4, "environment"), (8, "input")):
        clock.now += seconds
        assert time_use.spent(part) == seconds  # type: ignore[arg-type]
    counters = {"input_seconds": 9, "computing_seconds": 2, "environment_seconds": 4, "seconds": 15}
    assert time_use.counters() == counters


def test_shares_are_of_the_time_between() -> None:
    before, after = {"input_seconds": 5.0}, {"input_seconds": 6.0, "computing_seconds": 3.0, "steps": 1e9}
    assert shares(before, after) == {"input": 0.25, "computing": 0.75}
    assert shares(after, after) == {}


def totals(input_: float, computing: float) -> dict[str, dict[str, float]]:
    return {"trainer": {"input_seconds": input_, "computing_seconds": computing}, "actor": {"input_seconds": input_}}


def test_live_timing_is_of_the_last_seconds_and_at_the_end_of_all_since_the_first_batch() -> None:
    timing = LiveTiming("server")
    assert timing.summary() == {"timing": {}, "bottleneck": None}
    for second in range(101):
        timing.look(totals(7.0 + min(second, 50), max(0, second - 50)), float(second))
    assert timing.summary()["timing"]["trainer"] == {"computing": 1.0}
    assert timing.summary(whole=True)["timing"]["trainer"] == {"input": 0.5, "computing": 0.5}


def test_serial_run_has_shares_and_no_bottleneck() -> None:
    timing = LiveTiming(None)
    timing.look(totals(0, 0), 0.0)
    timing.look(totals(1, 1), 1.0)
    assert timing.summary()["timing"]["trainer"] == {"input": 0.5, "computing": 0.5}
    assert timing.summary()["bottleneck"] is None


def test_actor_whose_blocks_nobody_takes_waits_for_a_slot() -> None:
    play = Play(build(Settings(factory="synthetic"), num_environments=2, seed=1), seat={"records": 2})
    play.run(4, collects=False)
    before = play.actor.counters()
    for _ in range(20):
        play.actor.poll()
        play.only.serve()
    found = shares(before, play.actor.counters())
    assert found["slot"] > 0
    assert play.group.steps <= 8


def test_actor_that_nobody_serves_waits_for_input() -> None:
    play = Play(build(Settings(factory="synthetic"), num_environments=2, seed=1), seat={})
    play.actor.poll()
    before = play.actor.counters()
    for _ in range(20):
        play.actor.poll()
    assert shares(before, play.actor.counters()) == {"input": 1.0}


def test_time_in_a_slow_environment_is_the_environments() -> None:
    play = Play(build(Settings(factory="synthetic", step_seconds=0.002), num_environments=2, seed=1), seat={})
    play.run(3)
    assert play.actor.counters()["environment_seconds"] >= 3 * 2 * 0.002


@pytest.mark.parametrize(("blocks", "part"), [(BLOCKS - 1, "input"), (BLOCKS, "computing")])
def test_trainer_computes_once_its_batch_is_full(blocks: int, part: str) -> None:
    training = Training()
    for _ in range(blocks):
        training.send()
    training.poll(1)
    before = training.trainer.counters()
    training.poll(3)
    assert (shares(before, training.trainer.counters()).get("computing", 0.0) > 0) == (part == "computing")
