"""Episodes on their way from an environment into a recording and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.data.episode_file import EpisodeFile
from srlhpc.data.episodes import Episodes
from srlhpc.environment import Environment
from srlhpc.roles.acting import episode_recorder
from tests.roles.acting.recordings import Sequence, play
from tests.scripted import Script, Scripted
from tests.stacked import Stacked
from tests.turn_taking import Game, TurnTaking

AGENTS = ("a", "b", "c")
SPANS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=3)
SCRIPTS = st.builds(
    lambda steps, end, spans, cut: Script(steps, end, {"b": spans}, cut),
    st.integers(1, 9),
    st.sampled_from(["terminated", "truncated"]),
    SPANS,
    st.sampled_from([(), ("b",)]),
)
WORLDS = st.lists(st.lists(SCRIPTS, min_size=1, max_size=3), min_size=1, max_size=3)
SEATS = {"left": (0,), "right": (2, 1)}


def scripted(*lengths: int, agents: tuple[str, ...] = ("agent",)) -> Scripted:
    """One environment for each length, whose episodes all have it."""
    return Scripted([[Script(length)] for length in lengths], {"agent": agents})


def whole(episodes: Episodes, sequence: int) -> dict[str, np.ndarray]:
    """All of one sequence; its last row is the observation behind."""
    begin, end = episodes.offsets[sequence : sequence + 2]
    found = episodes.windows(np.array([begin]), int(end - begin) - 1)
    return {name: array[:, 0] for name, array in found.items()}


def check(found: Episodes, expected: list[Sequence]) -> None:
    """That a recording has just these sequences."""
    assert found.agents.tolist() == [sequence.agent for sequence in expected]
    assert found.episodes.tolist() == [sequence.episode for sequence in expected]
    np.testing.assert_array_equal(found.returns, [sequence.total for sequence in expected])
    assert found.num_records == sum(len(sequence.records) for sequence in expected)
    for number, sequence in enumerate(expected):
        fields = whole(found, number)
        assert fields["first"].tolist() == [True] + [False] * len(sequence.records)
        assert fields["valid"].all()
        for name in sequence.records[0]:
            values = [record[name] for record in sequence.records]
            np.testing.assert_array_equal(fields[name][: len(values)], values, name)
        for name, value in sequence.last.items():
            # The older frames of an agent that has left are those before it left, whatever the environment shows.
            shown = slice(None) if sequence.last_is_alive or value.ndim == 1 else -1
            np.testing.assert_array_equal(fields[name][-1][shown], value[shown], name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@settings(max_examples=20)
@given(
    world=WORLDS, frames=st.integers(1, 4), filled_with=st.sampled_from(["zeros", "newest"]), every=st.integers(1, 2)
)
def test_recording_has_what_every_agent_saw_did_and_got_in_whole_episodes(
    folder: Path, world: list[list[Script]], frames: int, filled_with: Literal["zeros", "newest"], every: int
) -> None:
    environment: Environment = Scripted(world, {"agent": AGENTS})
    if frames > 1:
        environment = Stacked(environment, frames, filled_with, every=every)
    path = folder / "file.h5"
    expected = play(environment, path, 16, SEATS)
    with EpisodeFile(path) as file:
        for policy, sequences in expected.items():
            check(file.episodes(policy), sequences)


@pytest.fixture(params=["in memory", "in a file"])
def spooled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Open episodes are kept in memory, or go to the disk row by row and come back in small pieces."""
    if request.param == "in a file":
        monkeypatch.setattr(episode_recorder, "_IN_MEMORY_BYTES", 1)
        monkeypatch.setattr(episode_recorder, "PIECE_BYTES", 100)
        monkeypatch.setattr("srlhpc.data.episode_writer._GATHERED_BYTES", 300)
    return


@pytest.mark.usefixtures("spooled")
def test_episodes_of_several_environments_are_each_in_one_piece(tmp_path: Path) -> None:
    environment = Stacked(scripted(3, 7, 40, agents=("a", "b")), 4)
    expected = play(environment, tmp_path / "file.h5", 130, {"all": (0, 1)})
    assert len(expected["all"]) == 2 * (32 + 16 + 3)
    with EpisodeFile(tmp_path / "file.h5") as file:
        check(file.episodes("all"), expected["all"])


def test_only_episodes_of_environments_that_play_on_are_recorded(tmp_path: Path) -> None:
    expected = play(scripted(2, 3), tmp_path / "file.h5", 11, {"all": (0,)}, playing=(False, True))
    with EpisodeFile(tmp_path / "file.h5") as file:
        found = file.episodes("all")
        check(found, expected["all"])
        assert np.diff(found.offsets).tolist() == [4, 4, 4]


def test_frames_of_stacks_are_there_once_behind_the_older_ones_of_each_sequence(tmp_path: Path) -> None:
    play(Stacked(scripted(3), 4), tmp_path / "file.h5", 7, {"all": (0,)})
    with EpisodeFile(tmp_path / "file.h5") as file:
        field = file.episodes("all").fields["obs.obs"]
    # Two episodes of three records and a last observation.
    assert field.entries.shape == (2 * (3 + 4), 3)


class Restacking(Stacked):
    """Its stacks begin anew in the middle of an episode."""

    def _show_kind(self, name, now):  # type: ignore[no-untyped-def]
        shown = super()._show_kind(name, now)
        if now.observations["obs"][0, 0, 1] == 3:
            shown.observations["obs"][0, 0, :-1] = 0
        return shown


def test_a_stack_that_begins_anew_in_the_middle_of_an_episode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="agent 'agent' .* environment 0: 'obs.obs' is declared as a stack of frames"):
        play(Restacking(scripted(5), 3), tmp_path / "file.h5", 5, {"all": (0,)})


class Endless(Scripted):
    """Ends its episodes without a word to its agents."""

    def step(self, actions):  # type: ignore[no-untyped-def]
        step = super().step(actions)
        step.kinds["agent"].terminated[:] = False
        return step


def test_flags_that_contradict_the_contract_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="agent 'agent' of kind 'agent' in environment 0 is not valid in the middle"):
        play(Endless([[Script(3)]]), tmp_path / "file.h5", 5, {"all": (0,)})


def test_turns_are_recorded_with_what_came_while_others_acted(folder: Path) -> None:
    # Agent b gets 3 before its first turn, and loses while it waits; of the second game nothing is its own.
    loses = Game((0, 1, 0, 1, 0), {0: {1: 3}, 1: {0: 1, 1: 2}, 4: {0: 4, 1: -4}})
    cut = Game((0, 0), {1: {0: 8, 1: 8}}, end="truncated")
    path = folder / "turns.h5"
    play(TurnTaking([[loses, cut]]), path, 9, {"left": (0,), "right": (1,)})
    with EpisodeFile(path) as file:
        left, right = file.episodes("left"), file.episodes("right")
        (first, second), (only,) = (
            [whole(episodes, number) for number in range(len(episodes.agents))] for episodes in (left, right)
        )
    assert first["obs.obs"][:, 1].tolist() == [1, 3, 5, 6]
    assert first["rewards"].tolist() == [1, 0, 4]
    assert only["obs.obs"][:, 1].tolist() == [2, 4, 6]
    assert only["rewards"].tolist() == [5, -4]
    assert only["terminated"].tolist() == [False, True]
    assert second["truncated"].tolist() == [False, True]
    assert right.returns.tolist() == [1]  # 3 + 2 - 4
