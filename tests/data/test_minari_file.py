"""Local data sets of Minari, written by that package, as episodes of ours."""

from __future__ import annotations

import dataclasses
import json
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer

from envs._gymnasium_actions import action_codec
from envs._gymnasium_spaces import observation_keys
from envs._single_agent import single_agent_spaces
from srlhpc.data.episodes import Episodes
from srlhpc.data.minari_file import read_minari
from srlhpc.errors import UserError

BOX = spaces.Box(-1, 1, (3,), np.float64)
IMAGE = spaces.Box(0, 255, (40, 36, 3), np.uint8)


def samples(space: Any, count: int) -> list[Any]:
    return [space.sample() for _ in range(count)]


def buffered(values: Sequence[Any]) -> Any:
    """Values as Minari's buffers have them: a mapping of lists where they are mappings."""
    if isinstance(values[0], dict):
        return {key: buffered([value[key] for value in values]) for key in values[0]}
    return list(values)


@dataclasses.dataclass
class Written:
    """A data set, and what went into it."""

    path: Path
    observations: list[list[Any]]
    actions: list[list[Any]]

    @property
    def data(self) -> Path:
        return self.path / "data"


def write(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    observations: Any = BOX,
    actions: Any = spaces.Discrete(2),  # noqa: B008
    *,
    ends: Sequence[tuple[bool, bool]] = ((True, False), (False, True)),
    **options: Any,
) -> Written:
    """A data set with an episode for each end (terminated, truncated): of 4 records, then 5, ..., rewards 1, 2, ..."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    for seed, space in enumerate((observations, actions)):
        space.seed(seed)
    made = Written(folder / "ours" / "test-v0", [], [])
    buffers = []
    for number, (terminated, truncated) in enumerate(ends):
        records = 4 + number
        made.observations.append(samples(observations, records + 1))
        made.actions.append(samples(actions, records))
        buffers.append(
            EpisodeBuffer(
                observations=buffered(made.observations[-1]),
                actions=buffered(made.actions[-1]),
                rewards=[float(t + 1) for t in range(records)],
                terminations=[False] * (records - 1) + [terminated],
                truncations=[False] * (records - 1) + [truncated],
            )
        )
    with warnings.catch_warnings():
        # Nobody is named who made it.
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "ours/test-v0", buffers, observation_space=observations, action_space=actions, **options
        )
    return made


def rows(episodes: Episodes, name: str) -> list[Any]:
    """All entries of a field, by sequence, last observations included."""
    entries = episodes.fields[name].entries[:]
    return np.split(entries, episodes.offsets[1:-1])


OBSERVATIONS = [
    BOX,
    spaces.Box(-9, 9, (2, 2), np.int32),
    spaces.Box(0, 255, (7,), np.uint8),
    spaces.Box(0, 9, (7,), np.uint8),
    spaces.Box(0, 255, (20, 20), np.uint8),
    spaces.Box(0, 255, (3, 20, 20), np.uint8),
    spaces.Box(0, 255, (20, 18, 3), np.uint8),
    spaces.Discrete(4, start=-1),
    spaces.Dict(
        {"a": BOX, "b": spaces.Dict({"c": spaces.Discrete(3), "d": spaces.Box(0, 255, (20, 18, 3), np.uint8)})}
    ),
]


@pytest.mark.parametrize("space", OBSERVATIONS, ids=str)
def test_observations_are_those_of_our_gymnasium_environments(
    space: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, ours = write(tmp_path, monkeypatch, space), observation_keys(space, "test")
    found = read_minari(written.path)
    assert found.kind.observations == ours.specs
    for number, seen in enumerate(written.observations):
        arrays = {name: np.zeros((len(seen), *spec.shape), spec.dtype) for name, spec in ours.specs.items()}
        for t, raw in enumerate(seen):
            ours.write(raw, arrays, t)
        for name, expected in arrays.items():
            np.testing.assert_array_equal(rows(found, f"obs.{name}")[number], expected)


ACTIONS = [
    spaces.Discrete(3),
    spaces.Discrete(3, start=5),
    spaces.MultiDiscrete([2, 3]),
    spaces.Box(-2, 2, (1,), np.float32),
    spaces.Box(np.array([-1, 0, -np.inf]), np.array([1, 10, np.inf]), (3,), np.float64),
    spaces.Box(np.array([[0.5, 3]]), np.array([[0.5, 4]]), (1, 2), np.float64),
]


@pytest.mark.parametrize("space", ACTIONS, ids=str)
def test_actions_are_those_that_our_gymnasium_environments_turn_into_these(
    space: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, codec = write(tmp_path, monkeypatch, BOX, space), action_codec(space, "test")
    found = read_minari(written.path)
    assert found.kind.actions == codec.space
    for number, acted in enumerate(written.actions):
        drawn = rows(found, "actions")[number]
        assert not drawn[-1].any()
        np.testing.assert_allclose(codec.decode(drawn[:-1]), np.array(acted), rtol=1e-5, atol=1e-6)


def test_a_data_set_fits_the_environment_that_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write(tmp_path, monkeypatch)
    keys, codec = observation_keys(BOX, "test"), action_codec(spaces.Discrete(2), "test")
    kind = single_agent_spaces(keys.specs, codec.space).kinds[0]
    assert read_minari(written.path, kind).kind == kind
    with pytest.raises(UserError, match=r"main_data\.hdf5 does not fit the environment: actions are discrete"):
        read_minari(written.path, dataclasses.replace(kind, actions=action_codec(BOX, "test").space))


def test_episodes_have_their_records_ends_and_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [(True, False), (False, True), (False, False), (True, True)]
    found = read_minari(write(tmp_path, monkeypatch, ends=ends).path)
    assert np.diff(found.offsets).tolist() == [5, 6, 7, 8]
    assert found.returns.tolist() == [10, 15, 21, 28]
    assert (found.num_episodes, found.num_records, found.agents.tolist()) == (4, 22, [0] * 4)
    for number, (terminated, truncated) in enumerate([(1, 0), (0, 1), (0, 1), (1, 0)]):
        records = 4 + number
        assert rows(found, "rewards")[number].tolist() == [*range(1, records + 1), 0]
        assert rows(found, "terminated")[number].tolist() == [0] * (records - 1) + [terminated, 0]
        assert rows(found, "truncated")[number].tolist() == [0] * (records - 1) + [truncated, 0]
    windows = found.windows(np.array([0]), 6)
    assert windows["obs.obs"].shape == (7, 1, 3)
    assert windows["valid"][:, 0].tolist() == [True] * 4 + [False, True]


def test_episodes_are_read_in_their_order_and_those_without_a_record_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write(tmp_path, monkeypatch, ends=[(True, False)] * 12)
    with h5py.File(written.data / "main_data.hdf5", "r+") as file:
        file["episode_3/rewards"].resize(0, axis=0)
    assert read_minari(written.path).episodes.tolist() == [0, 1, 2, *range(4, 12)]


def test_folder_its_data_and_its_file_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write(tmp_path, monkeypatch)
    for path in (written.path, written.data, written.data / "main_data.hdf5"):
        assert read_minari(path).num_records == 9


def test_spaces_may_be_attributes_of_the_file_as_until_minari_0_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write(tmp_path, monkeypatch)
    said = json.loads((written.data / "metadata.json").read_text())
    (written.data / "metadata.json").unlink()
    with pytest.raises(UserError, match="says nothing of its observation_space; load and save it with Minari"):
        read_minari(written.path)
    with h5py.File(written.data / "main_data.hdf5", "r+") as file:
        file.attrs.update({name: said[name] for name in ("observation_space", "action_space")})
        for episode in file.values():
            rewards = episode["rewards"][:]
            del episode["rewards"]
            episode["rewards"] = rewards[:, None]
    assert read_minari(written.path).returns.tolist() == [10, 15]


def test_images_as_jpeg_are_refused_and_whole_ones_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write(tmp_path, monkeypatch, IMAGE, jpeg_encoding=False)
    assert read_minari(written.path).kind.observations["obs"].shape == (3, 40, 36)
    shutil.rmtree(tmp_path)
    written = write(tmp_path, monkeypatch, IMAGE)
    with pytest.raises(UserError, match="observations holds images as JPEG, which .* anew with jpeg_encoding=False"):
        read_minari(written.path)


@pytest.mark.parametrize(
    ("observations", "actions", "why"),
    [
        (
            spaces.MultiBinary(3),
            spaces.Discrete(2),
            r"has a MultiBinary \(observations\); known are Box, Discrete, and",
        ),
        (
            BOX,
            spaces.MultiBinary(3),
            "its action space is a MultiBinary; known are Discrete, MultiDiscrete and Box of fl",
        ),
        (BOX, spaces.Box(0, 9, (1,), np.int64), "its action space is a Box of int64; known are"),
    ],
)
def test_other_spaces_are_refused(
    observations: Any, actions: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write(tmp_path, monkeypatch, observations, actions)
    with pytest.raises(UserError, match=why):
        read_minari(written.path)


def test_what_is_no_data_set_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advice = "name the folder of a data set of Minari, or its main_data.hdf5"
    for path, why in ((tmp_path / "none", "there is no such file"), (tmp_path, "holds no main_data.hdf5")):
        with pytest.raises(UserError, match=f"^{path}: {why}; {advice}$"):
            read_minari(path)
    written = write(tmp_path, monkeypatch)
    (written.data / "main_data.hdf5").rename(written.data / "data.arrow")
    said = json.loads((written.data / "metadata.json").read_text())
    (written.data / "metadata.json").write_text(json.dumps(said | {"data_format": "arrow"}))
    with pytest.raises(UserError, match="in the form 'arrow', and only 'hdf5' is read; write it anew with"):
        read_minari(written.path)


def test_what_does_not_fit_together_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write(tmp_path, monkeypatch)
    with h5py.File(written.data / "main_data.hdf5", "r+") as file:
        file["episode_1/terminations"][1] = True
    with pytest.raises(UserError, match="/episode_1 goes on after an end; only whole episodes are read"):
        read_minari(written.path)
    with h5py.File(written.data / "main_data.hdf5", "r+") as file:
        file["episode_0/observations"].resize(4, axis=0)
    with pytest.raises(UserError, match=r"/episode_0/observations has the shape \[4, 3\], not \[5, 3\]"):
        read_minari(written.path)
    with h5py.File(written.data / "main_data.hdf5", "r+") as file:
        del file["episode_0/actions"]
        file["episode_0/observations"].resize(5, axis=0)
    with pytest.raises(UserError, match="is damaged, or no data set of Minari: .*actions.*; use a copy of it"):
        read_minari(written.path)
