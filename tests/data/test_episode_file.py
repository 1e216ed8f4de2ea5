"""Recordings as files: what is in one, and which files are none."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from srlhpc.data import episode_writer
from srlhpc.data.checkpoint import write_checkpoint
from srlhpc.data.episode_file import EpisodeFile
from srlhpc.data.full_disk import ROOM_BYTES
from srlhpc.environment import Spaces
from srlhpc.errors import UserError
from tests.data.recorded import FRAMES, KIND, write


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "whole.h5"
    write(path, [3, 1, 40])
    return path


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "file.h5"))


def test_file_says_what_it_is(whole: Path) -> None:
    with EpisodeFile(whole) as file:
        assert file.spaces == Spaces((KIND,))
        assert file.policies == ("only",)
        assert file.attributes["run"] == "x"
        assert (file.attributes["format"], file.attributes["format_version"]) == ("recording of srlhpc", 1)
        file.episodes("only", KIND)


def test_file_is_read_with_h5py_alone(whole: Path) -> None:
    with h5py.File(whole) as file:
        policy = file["policies/only"]
        begin, end = policy["offsets"][2:4]
        rewards = policy["records/rewards"][begin : end - 1]
        observations = policy["records/obs.obs"][begin:end]
        frames = policy["records/obs.screen"][begin + 2 * (FRAMES - 1) : end + 3 * (FRAMES - 1)]
    assert rewards.tolist() == list(range(6, 46))
    assert observations[:, 0].tolist() == list(range(6, 47))
    stacks = np.lib.stride_tricks.sliding_window_view(frames, FRAMES, axis=0)
    assert stacks[[0, 1, -1], 0].tolist() == [[200, 200, 6], [200, 6, 7], [44, 45, 46]]


def test_sequences_that_come_in_pieces_are_written_as_those_that_come_whole(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_writer, "_GATHERED_BYTES", 200)
    write(tmp_path / "pieces.h5", [3, 1, 40], at_once=7)
    with EpisodeFile(tmp_path / "pieces.h5") as one, EpisodeFile(whole) as other:
        found, expected = one.episodes("only"), other.episodes("only")
        assert found.offsets.tolist() == expected.offsets.tolist()
        for name, field in expected.fields.items():
            np.testing.assert_array_equal(found.fields[name].entries[:], field.entries[:])


def test_bytes_of_a_file_are_far_fewer_than_those_of_its_arrays(tmp_path: Path) -> None:
    path = tmp_path / "large.h5"
    write(path, [20_000])
    with EpisodeFile(path) as file:
        assert path.stat().st_size < file.episodes("only").size_bytes / 2


def change(path: Path, edit: Callable[[h5py.File], None]) -> None:
    with h5py.File(path, "r+") as file:
        edit(file)


def reading(path: Path) -> str:
    """What is said when the file is opened, and all of it read."""
    with pytest.raises(UserError) as refused, EpisodeFile(path) as file:
        file.episodes("only").in_memory()
    return str(refused.value).removeprefix(f"{path}: ")


def test_no_file_and_no_recording_are_refused_with_what_writes_one(tmp_path: Path) -> None:
    advice = "`srlhpc record RUN --out FILE` writes one"
    assert reading(tmp_path / "none.h5") == f"there is no such file; {advice}"
    assert reading(tmp_path) == f"is a folder, not an HDF5 file; {advice}"
    for content in (b"", b"not HDF5 at all" * 100):
        (tmp_path / "text").write_bytes(content)
        assert reading(tmp_path / "text") == f"is no HDF5 file; {advice}"
    write_checkpoint(tmp_path / "checkpoint.h5", {"a": 1})
    assert reading(tmp_path / "checkpoint.h5") == f"is HDF5, but no recording of srlhpc; {advice}"
    with h5py.File(tmp_path / "minari.h5", "w") as file:
        file.create_group("episode_0")
    assert "; it looks like a data set of Minari; " in reading(tmp_path / "minari.h5")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_file_that_was_cut_off_is_refused(share: float, copied: Path) -> None:
    os.truncate(copied, int(share * copied.stat().st_size))
    assert reading(copied) == "is truncated, only a part of it is there; copy it again"


@pytest.mark.parametrize(("version", "advice"), [(2, "update srlhpc to read it"), (0, "record it anew")])
def test_other_versions_of_the_format_are_refused(version: int, advice: str, copied: Path) -> None:
    change(copied, lambda file: file.attrs.modify("format_version", version))
    assert reading(copied) == (
        f"is a recording of the format version {version}, and this srlhpc reads version 1; {advice}"
    )


def test_a_policy_that_is_not_there_is_refused_with_those_that_are(whole: Path) -> None:
    with EpisodeFile(whole) as file, pytest.raises(UserError, match="has no policy 'onyl'; did you mean 'only'"):
        file.episodes("onyl")


def number_instead_of(records: h5py.Group, name: str) -> None:
    attributes = dict(records[name].attrs)
    del records[name]
    records.create_dataset(name, data=1.0).attrs.update(attributes)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda only: only.__delitem__("offsets"), "offsets"),
        (lambda only: only["offsets"].write_direct(np.array([0, 9, 6, 47])), "its offsets are none of 3 sequences"),
        (lambda only: only["records/rewards"].resize(3, axis=0), "field 'rewards' has 3 entries, not 47"),
        (lambda only: only["records/obs.screen"].resize(47, axis=0), "field 'obs.screen' has 47 entries, not 53"),
        (lambda only: only.__delitem__("records/actions"), "it has no field 'actions'"),
        (lambda only: only.attrs.modify("kind", "other"), "'other'"),
        (lambda only: number_instead_of(only["records"], "rewards"), "index out of range"),
    ],
)
def test_what_does_not_fit_together_is_damaged(edit: Callable[[h5py.Group], None], why: str, copied: Path) -> None:
    change(copied, lambda file: edit(file["policies/only"]))
    said = reading(copied)
    assert said.startswith("is damaged: ")
    assert why in said
    assert said.endswith("; use a copy of it, or record anew")


def test_a_byte_that_changed_is_found_when_it_is_read(copied: Path) -> None:
    with h5py.File(copied) as file:
        place = file["policies/only/records/obs.obs"].id.get_chunk_info(0).byte_offset
    with open(copied, "r+b") as raw:
        raw.seek(place + 10)
        byte = raw.read(1)[0]
        raw.seek(place + 10)
        raw.write(bytes([byte ^ 255]))
    assert "is damaged: /policies/only/records/obs.obs cannot be read" in reading(copied)


@pytest.fixture
def short_files() -> Iterator[None]:
    """No file gets longer than 8 KB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 13, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("short_files")
@pytest.mark.parametrize(("gathered", "is_early"), [(1 << 12, True), (1 << 30, False)])
def test_a_disk_that_takes_no_more_is_told_with_the_file_which_is_not_there(
    gathered: int, is_early: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_writer, "_GATHERED_BYTES", gathered)
    # HDF5 keeps some of each array to itself.
    begun = iter([20_000] * 8)
    with pytest.raises(OSError, match="File too large") as failed:
        write(tmp_path / "file.h5", begun)
    assert failed.value.filename == str(tmp_path / "file.h5")
    assert list(tmp_path.iterdir()) == []
    # Seen while it is written, or when it is completed.
    assert (len(list(begun)) > 0) == is_early


def test_some_room_is_left_for_the_last_words_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srlhpc.data.full_disk.free_bytes", lambda _folder: ROOM_BYTES + 100)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "file.h5", [100])
