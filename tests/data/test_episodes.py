"""Windows of recorded episodes: data/episodes.py."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.data.episode_file import EpisodeFile
from srlhpc.data.episodes import Episodes
from srlhpc.data.epoch_draws import EpochDraws
from srlhpc.environment import ArraySpec, Discrete
from srlhpc.errors import UserError
from tests.data.recorded import KIND, write

LENGTHS = (3, 1, 4)
ROWS = 11
"""Last observations included."""
LAST = {3, 5, 10}
"""Rows that are a sequence's last."""
FIRST = {0, 4, 6}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("recordings") / "file.h5"
    write(path, LENGTHS)
    with EpisodeFile(path) as file:
        yield file.episodes("only")


@pytest.fixture(params=["in the file", "in memory"])
def episodes(request: pytest.FixtureRequest, stored: Episodes) -> Episodes:
    return stored if request.param == "in the file" else stored.in_memory()


def test_recording_says_how_much_there_is(episodes: Episodes) -> None:
    assert (episodes.num_episodes, episodes.num_sequences, episodes.num_records, episodes.num_rows) == (3, 3, 8, ROWS)
    assert episodes.returns.tolist() == [3, 1, 4]
    # Two frames of four bytes more for each sequence.
    entries = {"obs.obs": 8, "obs.screen": 4, "obs.a/b": 4, "actions": 4, "log_probs": 4, "rewards": 4, "out.value": 4}
    assert episodes.size_bytes == ROWS * (sum(entries.values()) + 2) + 3 * 2 * 4


def stack(row: int) -> list[int]:
    """The stack of a row; frames before the first of a sequence are 200."""
    first = max(each for each in FIRST if each <= row)
    return [each if each >= first else 200 for each in range(row - 2, row + 1)]


def test_windows_have_every_field_of_their_records_and_what_is_seen_behind_them(episodes: Episodes) -> None:
    found = episodes.windows(np.array([0, 2, 9]), 4)
    seen = [[0, 1, 2, 3, 4], [2, 3, 4, 5, 6], [9, 10, 0, 1, 2]]
    acted = [column[:-1] for column in seen]
    assert found["obs.obs"].shape == (5, 3, 2)
    assert found["obs.obs"][:, :, 1].T.tolist() == found["obs.a/b"].T.tolist() == seen
    assert found["obs.screen"].shape == (5, 3, 3, 4)
    assert found["obs.screen"][..., 0].transpose(1, 0, 2).tolist() == [[stack(row) for row in each] for each in seen]
    assert found["first"].T.tolist() == [[row in FIRST for row in each] for each in seen]
    assert found["valid"].T.tolist() == [[row not in LAST for row in each] for each in acted]
    assert found["truncated"].T.tolist() == [[row + 1 in LAST for row in each] for each in acted]
    assert not found["terminated"].any()
    for name in ("rewards", "log_probs", "out.value"):
        assert found[name].T.tolist() == [[0 if row in LAST else row for row in each] for each in acted]
    assert found["actions"].shape == (4, 3, 1)


def test_a_window_may_be_longer_than_all_there_is(episodes: Episodes) -> None:
    found = episodes.windows(np.array([8]), 2 * ROWS)
    assert found["obs.a/b"][:, 0].tolist() == [(8 + t) % ROWS for t in range(2 * ROWS + 1)]


def test_a_shortened_window_is_cut_and_bootstraps_from_the_observation_behind(episodes: Episodes) -> None:
    found = episodes.windows(np.array([0, 1, 2, 3, 6]), 4, np.array([2, 2, 2, 4, 1]))
    assert found["obs.a/b"].T.tolist() == [
        [0, 1, 2, 2, 2],
        [1, 2, 3, 3, 3],
        [2, 3, 4, 4, 4],
        [3, 4, 5, 6, 7],
        [6, 7, 7, 7, 7],
    ]
    assert found["valid"].astype(int).T.tolist() == [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 1, 0, 1],
        [1, 0, 0, 0],
    ]
    # Cut after record 1, ended by itself after record 2, twice; a whole window is not cut; cut after record 6.
    assert found["truncated"].astype(int).T.tolist() == [
        [0, 1, 0, 0],
        [0, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [1, 0, 0, 0],
    ]
    assert found["rewards"].T.tolist() == [[0, 1, 0, 0], [1, 2, 0, 0], [2, 0, 0, 0], [0, 4, 0, 6], [6, 0, 0, 0]]


def test_a_terminated_record_is_not_truncated_by_a_cut(stored: Episodes) -> None:
    episodes = stored.in_memory()
    entries = np.zeros(ROWS, np.bool_)
    entries[4] = True
    fields = episodes.fields
    episodes.fields = fields | {"terminated": dataclasses.replace(fields["terminated"], entries=entries)}
    episodes.fields["truncated"] = dataclasses.replace(fields["truncated"], entries=np.zeros(ROWS, np.bool_))
    found = episodes.windows(np.array([4]), 3, np.array([1]))
    assert (found["terminated"].sum(), found["truncated"].sum(), found["valid"].sum()) == (1, 0, 1)


@settings(max_examples=20)
@given(starts=st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=9), records=st.integers(1, 14))
def test_windows_of_a_file_are_those_of_memory(stored: Episodes, starts: list[int], records: int) -> None:
    lengths = 1 + np.arange(len(starts)) % records
    found, expected = (each.windows(np.array(starts), records, lengths) for each in (stored, stored.in_memory()))
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, name)


@pytest.mark.parametrize("records", [1, 3, 4, 20])
def test_each_record_comes_once_in_an_epoch_of_fragments(records: int, episodes: Episodes) -> None:
    draws = EpochDraws(episodes.num_rows, records, seed=1)
    found = episodes.windows(*_by_place(draws.draw(draws.fragments), records))
    assert sorted(found["obs.a/b"][:-1][found["valid"]].tolist()) == sorted(set(range(ROWS)) - LAST)


def _by_place(fragments: Any, records: int) -> tuple[Any, int, Any]:
    return fragments.starts, records, fragments.lengths


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"observations": {**KIND.observations, "obs": ArraySpec((5,), "float32")}},
            "'obs' is [2] float32 there and [5]",
        ),
        ({"observations": {"obs": KIND.observations["obs"]}}, "observation 'screen' is [3, 4] uint8 there and missing"),
        (
            {"observations": {**KIND.observations, "x": ArraySpec((), "bool")}},
            "observation 'x' is missing there and [] bo",
        ),
        ({"actions": Discrete(3)}, "actions are continuous (size 1) there and discrete (choices 3) here"),
        ({"has_action_masks": True}, "actions have no masks there and masks here"),
    ],
)
def test_agents_that_see_or_do_something_else_are_refused(changes: dict[str, Any], why: str, stored: Episodes) -> None:
    with pytest.raises(UserError) as refused:
        stored.require(dataclasses.replace(KIND, **changes))
    assert why in str(refused.value)
    assert str(refused.value).startswith(f"{stored.where} does not fit the environment: ")


def test_agents_of_other_names_and_stacks_that_are_not_declared_fit(stored: Episodes) -> None:
    stored.require(dataclasses.replace(KIND, name="other", agents=("c",), stacks={}))
