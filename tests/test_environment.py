from __future__ import annotations

import numpy as np
import pytest

from srlhpc.environment import (
    ActionSpace,
    ArraySpec,
    Continuous,
    Discrete,
    Episode,
    EpisodeTracker,
    Kind,
    MultiDiscrete,
    Spaces,
    empty_kind_step,
)


@pytest.mark.parametrize("actions", [Discrete(3), MultiDiscrete((2, 3)), Continuous(4)])
def test_spaces_survive_json(actions: ActionSpace) -> None:
    kind = Kind("a", ("a_0", "a_1"), {"obs": ArraySpec((2, 3), "uint8")}, actions, has_action_masks=True)
    spaces = Spaces((kind,), frames_per_step=4)
    assert Spaces.from_json(spaces.to_json()) == spaces


def test_unknown_action_space_in_json_is_refused() -> None:
    data = Spaces((Kind("a", ("a",), {}, Discrete(2)),)).to_json()
    data["kinds"][0]["actions"]["kind"] = "quantum"
    with pytest.raises(ValueError, match="quantum"):
        Spaces.from_json(data)


def test_empty_step_has_the_shapes_of_its_kind() -> None:
    kind = Kind("a", ("a_0", "a_1"), {"obs": ArraySpec((4,), "uint8")}, MultiDiscrete((2, 3)), has_action_masks=True)
    step = empty_kind_step(kind, num_environments=3)
    assert step.observations["obs"].shape == (3, 2, 4)
    assert step.observations["obs"].dtype == np.uint8
    assert step.rewards.shape == step.alive.shape == (3, 2)
    assert step.action_masks is not None
    assert step.action_masks.shape == (3, 2, 5)
    assert step.action_masks.all()


def record(tracker: EpisodeTracker, *rows: tuple[list[float], bool, bool]) -> list[Episode]:
    """One call; for each environment its rewards, whether its last record counted and whether it ended."""
    rewards, valid, ended = (np.array(column) for column in zip(*rows, strict=True))
    return list(tracker.record(rewards, valid, ended))


def test_tracker_reports_steps_and_returns_of_the_environments_that_ended() -> None:
    tracker = EpisodeTracker(2, ("a", "b"))
    assert record(tracker, ([1, 2], True, False), ([0, 0], True, False)) == []
    assert record(tracker, ([4, 8], True, True), ([1, 1], True, False)) == [Episode(0, 2, {"a": 5.0, "b": 10.0})]
    assert record(tracker, ([0, 0], False, False), ([0, 2], True, True)) == [Episode(1, 3, {"a": 1.0, "b": 3.0})]


def test_tracker_begins_anew_after_an_episode_and_skips_invalid_records() -> None:
    tracker = EpisodeTracker(1, ("a",))
    record(tracker, ([1], True, True))
    record(tracker, ([0], False, False))
    assert record(tracker, ([2], True, True)) == [Episode(0, 1, {"a": 2.0})]


def test_reset_tracker_forgets_what_was_under_way() -> None:
    tracker = EpisodeTracker(1, ("a",))
    record(tracker, ([1], True, False))
    tracker.reset()
    assert record(tracker, ([2], True, True)) == [Episode(0, 1, {"a": 2.0})]


def test_tracker_adds_in_double_precision() -> None:
    tracker = EpisodeTracker(1, ("a",))
    record(tracker, ([2.0**24], True, False))
    record(tracker, ([1.0], True, False))
    assert record(tracker, ([1.0], True, True))[0].returns["a"] == 2.0**24 + 2


def record_by_agent(tracker: EpisodeTracker, valid: list[bool], *, ended: bool) -> list[Episode]:
    """One call for one environment; every agent with a valid record is rewarded with 1."""
    rows = np.array([valid])
    return list(tracker.record(rows.astype(np.float32), rows, np.array([ended])))


def test_tracker_leaves_out_agents_that_were_never_in_the_game() -> None:
    tracker = EpisodeTracker(1, ("late", "gone", "absent"))
    record_by_agent(tracker, [False, True, False], ended=False)
    assert record_by_agent(tracker, [True, False, False], ended=True) == [Episode(0, 2, {"late": 1.0, "gone": 1.0})]
    assert record_by_agent(tracker, [False, False, False], ended=False) == []
    assert record_by_agent(tracker, [False, False, True], ended=True) == [Episode(0, 1, {"absent": 1.0})]


def test_loaded_tracker_goes_on() -> None:
    tracker, other = EpisodeTracker(1, ("a", "b")), EpisodeTracker(1, ("a", "b"))
    record_by_agent(tracker, [True, False], ended=False)
    other.load_state(tracker.save_state())
    assert record_by_agent(other, [False, False], ended=True) == [Episode(0, 1, {"a": 1.0})]


def test_loaded_tracker_counts_all_agents_where_the_state_does_not_know_who_was_there() -> None:
    tracker = EpisodeTracker(1, ("a", "b"))
    state = {name: array for name, array in tracker.save_state().items() if name != "episode_was_there"}
    tracker.load_state(state)
    assert record_by_agent(tracker, [True, False], ended=True) == [Episode(0, 1, {"a": 1.0, "b": 0.0})]
