"""A stranger's checkpoint with a right digest: nothing in it reaches other files or more memory than it is long."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from srlhpc.data.checkpoint import FORMAT_VERSION, HEADER_BYTES, MAGIC, read_checkpoint
from srlhpc.errors import UserError

Fill = Callable[[h5py.File, Path], object]


def strange(path: Path, fill: Fill) -> Path:
    """A file with a right header around whatever `fill` puts in."""
    with h5py.File(str(path), "w", driver="core", backing_store=False, userblock_size=HEADER_BYTES) as file:
        fill(file, path.parent)
        file.flush()
        image: bytes = file.id.get_file_image()
    described = {"format_version": FORMAT_VERSION, "score": None, "bytes": HEADER_BYTES + len(image)}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode() + image).hexdigest()
    text = f"{MAGIC}\n{json.dumps(described | {'sha256': digest})}\n"
    path.write_bytes(text.encode().ljust(HEADER_BYTES) + image)
    return path


def array(group: h5py.Group, name: str = "x", kind: str = "array", **made: object) -> h5py.Dataset:
    dataset = group.create_dataset(name, **(made or {"data": np.arange(3.0)}))
    dataset.attrs["kind"] = kind
    return dataset


def raw_data_elsewhere(file: h5py.File, folder: Path) -> None:
    (folder / "secret.txt").write_text("my private key")
    array(file, shape=(14,), dtype="u1", external=[(str(folder / "secret.txt"), 0, 14)])


def external_link(file: h5py.File, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        array(other)
    file["x"] = h5py.ExternalLink(str(folder / "other.h5"), "x")


def soft_link(file: h5py.File, _folder: Path) -> None:
    array(file, "y")
    file["x"] = h5py.SoftLink("/y")


def virtual(file: h5py.File, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        array(other)
    layout = h5py.VirtualLayout(shape=(3,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "x", shape=(3,))
    file.create_virtual_dataset("x", layout).attrs["kind"] = "array"


def compressed(file: h5py.File, _folder: Path) -> None:
    array(file, shape=(10**7,), dtype="f4", chunks=(10**6,), compression="gzip")


def in_chunks(file: h5py.File, _folder: Path) -> None:
    array(file, shape=(4,), dtype="f4", chunks=(2,))


def claims_without_data(file: h5py.File, _folder: Path) -> None:
    array(file, shape=(10**13,), dtype="f8")


def claims_a_little_without_data(file: h5py.File, _folder: Path) -> None:
    array(file, shape=(2,), dtype="f8")


def the_same_twice(file: h5py.File, _folder: Path) -> None:
    file["y"] = array(file)


def group_in_itself(file: h5py.File, _folder: Path) -> None:
    inner = file.create_group("inner")
    inner["again"] = file["/"]


def deep_groups(file: h5py.File, _folder: Path) -> None:
    file.create_group("/".join("g" * 2000))


def many_texts(file: h5py.File, _folder: Path) -> None:
    array(file, kind="str", data=np.array(["a"] * 5, h5py.string_dtype()))


def long_text_of_fixed_length(file: h5py.File, _folder: Path) -> None:
    array(file, kind="str", shape=(), dtype=h5py.string_dtype("utf-8", 2**30))


def records(file: h5py.File, _folder: Path) -> None:
    array(file, data=np.zeros(2, [("a", "i4"), ("b", "f8")]))


def references(file: h5py.File, _folder: Path) -> None:
    array(file, data=np.array([file.ref], h5py.ref_dtype), dtype=h5py.ref_dtype)


def lists_of_any_length(file: h5py.File, _folder: Path) -> None:
    array(file, shape=(1,), dtype=h5py.vlen_dtype("i4"))


def named_type(file: h5py.File, _folder: Path) -> None:
    file["x"] = np.dtype("f8")


def no_space(file: h5py.File, _folder: Path) -> None:
    array(file, data=h5py.Empty("f4"))


def kind_that_is_large(file: h5py.File, _folder: Path) -> None:
    file.create_dataset("x", data=1.0).attrs["kind"] = np.zeros(1000)


def unknown_kind(file: h5py.File, _folder: Path) -> None:
    array(file, kind="pickle")


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        (raw_data_elsewhere, "entry /x lies in another file, '.*secret.txt'"),
        (external_link, "entry /x is a link to 'x' of '.*/other.h5'"),
        (soft_link, "entry /x is a link to '/y'"),
        (virtual, "entry /x is put together from other files"),
        (compressed, "entry /x is compressed or in chunks"),
        (in_chunks, "entry /x is compressed or in chunks"),
        (claims_without_data, "entry /x claims 80,000,000,000,000 bytes"),
        (claims_a_little_without_data, "entry /x claims 16 bytes"),
        (the_same_twice, "entry /y is there twice"),
        (group_in_itself, "entry /inner/again is there twice"),
        (deep_groups, "without end"),
        (many_texts, "entry /x is no single text"),
        (long_text_of_fixed_length, "entry /x is no single text"),
        (records, "entry /x has the type"),
        (references, "entry /x has the type"),
        (lists_of_any_length, "entry /x has the type"),
        (named_type, "entry /x is neither a group nor an array"),
        (no_space, "entry /x claims"),
        (kind_that_is_large, "entry /x has an attribute `kind` that is no text"),
        (unknown_kind, "entry /x has the unknown kind 'pickle'"),
    ],
)
def test_what_srlhpc_never_writes_is_refused_before_it_is_read(tmp_path: Path, fill: Fill, said: str) -> None:
    path = strange(tmp_path / "file.h5", fill)
    with pytest.raises(UserError, match=f"file.h5: is no checkpoint of srlhpc, which writes no such thing: .*{said}"):
        read_checkpoint(path)


def test_what_srlhpc_writes_is_read(tmp_path: Path) -> None:
    path = strange(tmp_path / "file.h5", lambda file, _: array(file.create_group("a")))
    assert read_checkpoint(path)["a"]["x"].tolist() == [0.0, 1.0, 2.0]


def test_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file.h5")
    with pytest.raises(UserError, match="is empty"):
        read_checkpoint(tmp_path / "file.h5")
