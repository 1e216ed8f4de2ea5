"""Checkpoint files: what goes in comes out; what is damaged is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from srlhpc.data import checkpoint
from srlhpc.data.checkpoint import HEADER_BYTES, read_checkpoint, read_score, write_checkpoint
from srlhpc.errors import UserError

_DTYPES = st.sampled_from(["?", "i1", "<u4", "<i8", ">i4", "<f2", "<f4", "<f8", "<c16"])
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**130), 2**130),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
    _DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0))),
)
_KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_TREES = st.dictionaries(
    _KEYS, st.recursive(_LEAVES, lambda inner: st.dictionaries(_KEYS, inner, max_size=4), max_leaves=8), max_size=4
)
TREE = {"meta": {"updates": 7, "name": "a\nb"}, "policies": {"default": {"w": np.arange(1000.0), "none": None}}}


def same(left: Any, right: Any) -> bool:
    """Equal to the last bit, types included."""
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, np.ndarray):
        return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes())
    if isinstance(left, float) and math.isnan(left):
        return isinstance(right, float) and math.isnan(right)
    return type(left) is type(right) and bool(left == right)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.h5"
    write_checkpoint(path, TREE, 2.5)
    return path


def damaged(file: Path, damage: Callable[[bytearray], object]) -> str:
    """The refusal of a file that was changed."""
    content = bytearray(file.read_bytes())
    damage(content)
    file.write_bytes(content)
    with pytest.raises(UserError) as refusal:
        read_checkpoint(file)
    assert str(refusal.value).startswith(f"{file}: ")
    return str(refusal.value)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=_TREES)
def test_tree_comes_back_bit_for_bit(tmp_path: Path, tree: dict[str, Any]) -> None:
    path = tmp_path / "file.h5"
    write_checkpoint(path, tree)
    assert same(read_checkpoint(path), tree)


def test_kept_state_of_a_generator_continues_it(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    generator.random(3)
    write_checkpoint(tmp_path / "file.h5", dict(generator.bit_generator.state))
    expected = generator.random(4)
    other = np.random.default_rng(0)
    other.bit_generator.state = read_checkpoint(tmp_path / "file.h5")
    assert other.random(4).tolist() == expected.tolist()


def test_numpy_scalar_comes_back_as_a_number(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "file.h5", {"count": np.int64(4)})
    assert same(read_checkpoint(tmp_path / "file.h5"), {"count": 4})


@pytest.mark.parametrize("value", [[1, 2], b"bytes", object(), np.array(["text"]), np.array([object()])])
def test_leaf_that_hdf5_has_no_place_for_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(TypeError, match="checkpoint entry /group/key is"):
        write_checkpoint(tmp_path / "file.h5", {"group": {"key": value}})  # type: ignore[dict-item]


def test_any_flipped_bit_is_refused(file: Path) -> None:
    content = file.read_bytes()
    positions = random.Random(1)
    for _ in range(300):
        flipped = bytearray(content)
        flipped[positions.randrange(len(content.rstrip()))] ^= 1 << positions.randrange(8)
        file.write_bytes(flipped)
        with pytest.raises(UserError):
            read_checkpoint(file)


def test_flipped_byte_of_the_contents_changes_the_digest(file: Path) -> None:
    def flip(content: bytearray) -> None:
        content[-1] ^= 0xFF

    assert "is damaged: its contents have the digest" in damaged(file, flip)


def test_changed_score_changes_the_digest(file: Path) -> None:
    def change(content: bytearray) -> None:
        content[:] = content.replace(b'"score": 2.5', b'"score": 9.5')

    assert "digest" in damaged(file, change)


@pytest.mark.parametrize("length", [1, HEADER_BYTES - 1, HEADER_BYTES, 1500, -1])
def test_truncated_file_is_named_as_such(file: Path, length: int) -> None:
    def cut(content: bytearray) -> None:
        del content[length:]

    message = damaged(file, cut)
    assert "is truncated" in message if length > 20 or length < 0 else "no checkpoint" in message
    assert "srlhpc checkpoint verify" in message


def test_empty_file_is_named_as_such(file: Path) -> None:
    assert "is empty" in damaged(file, bytearray.clear)


def test_newer_format_asks_for_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "FORMAT_VERSION", 99)
    write_checkpoint(tmp_path / "file.h5", TREE)
    monkeypatch.undo()
    with pytest.raises(UserError, match="format version 99, and this srlhpc reads version 1.*update srlhpc"):
        read_checkpoint(tmp_path / "file.h5")


def test_text_file_is_no_hdf5(tmp_path: Path) -> None:
    (tmp_path / "file.h5").write_text("hello")
    with pytest.raises(UserError, match="is no HDF5 file and no checkpoint"):
        read_checkpoint(tmp_path / "file.h5")


def test_other_hdf5_file_is_no_checkpoint_of_ours(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(UserError, match="is HDF5, but no checkpoint of srlhpc"):
        read_checkpoint(tmp_path / "file.h5")


def test_missing_file_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such checkpoint file"):
        read_checkpoint(tmp_path / "file.h5")


def test_hdf5_tools_see_the_arrays_of_a_file(file: Path) -> None:
    with h5py.File(file, "r") as opened:
        assert opened["policies/default/w"][3] == 3.0


def test_overwritten_file_leaves_no_rest(file: Path) -> None:
    write_checkpoint(file, {"other": 1})
    assert read_checkpoint(file) == {"other": 1}
    assert [path.name for path in file.parent.iterdir()] == ["file.h5"]


def test_failed_write_leaves_the_old_file_and_no_rest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_checkpoint(file, {"other": 1})
    monkeypatch.undo()
    assert same(read_checkpoint(file), TREE)
    assert [path.name for path in file.parent.iterdir()] == ["file.h5"]


@pytest.mark.parametrize(("score", "expected"), [(None, None), (math.nan, None), (-3.0, -3.0)])
def test_score_is_read_as_written(tmp_path: Path, score: float | None, expected: float | None) -> None:
    write_checkpoint(tmp_path / "file.h5", {}, score)
    assert read_score(tmp_path / "file.h5") == expected
