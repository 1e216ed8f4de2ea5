"""Which checkpoint is the newest whole one, and which are kept."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from srlhpc.data.checkpoint import (
    FORMAT_VERSION,
    HEADER_BYTES,
    MAGIC,
    read_checkpoint,
    read_score,
    write_checkpoint,
)
from srlhpc.data.checkpoint_entries import Tree
from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.errors import UserError


def kept(folder: CheckpointFolder) -> list[int]:
    return [updates_of(path) for path in folder.files()]


def break_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def test_missing_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert CheckpointFolder(tmp_path / "none").newest_valid() is None


def test_newest_has_the_most_updates(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=10)
    for updates in (5, 1_000_000_000, 40):
        folder.save({"updates": updates}, updates)
    newest = folder.newest_valid()
    assert newest
    assert (newest.tree, newest.problems) == ({"updates": 1_000_000_000}, [])


def test_broken_newest_gives_the_one_before_and_why(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    first, second = folder.save({"updates": 1}, 1), folder.save({"updates": 2}, 2)
    break_file(second)
    newest = folder.newest_valid()
    assert newest
    assert newest.path == first
    assert len(newest.problems) == 1
    assert newest.problems[0].startswith(f"{second}: is truncated")


def test_folder_of_broken_checkpoints_is_refused(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    break_file(folder.save({}, 1))
    with pytest.raises(UserError, match="of 1 checkpoint none can be used"):
        folder.newest_valid()


def test_save_removes_the_oldest_beyond_keep(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=2, keep_best=0)
    for updates in range(1, 6):
        folder.save({}, updates)
    assert kept(folder) == [4, 5]


def test_best_old_checkpoint_stays_beside_the_last(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=2, keep_best=1)
    for updates, score in enumerate([-9.0, -1.0, -5.0, -4.0, None], start=1):
        folder.save({}, updates, score)
    assert kept(folder) == [2, 4, 5]


def test_newer_of_equal_scores_is_better(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=1, keep_best=1)
    for updates, score in [(1, 3.0), (2, 3.0), (3, 1.0)]:
        folder.save({}, updates, score)
    assert kept(folder) == [2, 3]


def test_broken_checkpoints_push_out_no_whole_ones(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=1, keep_best=0)
    break_file(folder.save({}, 30))
    folder.save({}, 20)
    folder.save({}, 25)
    assert kept(folder) == [25, 30]
    newest = folder.newest_valid()
    assert newest
    assert updates_of(newest.path) == 25


def test_save_removes_the_rest_of_an_interrupted_write(tmp_path: Path) -> None:
    rest = tmp_path / ".updates-000000001.h5.4711.writing"
    rest.touch()
    foreign = tmp_path / "notes.txt"
    foreign.touch()
    CheckpointFolder(tmp_path).save({}, 2)
    assert not rest.exists()
    assert foreign.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "none", folder]).returncode:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_disk_leaves_the_last_good_checkpoint(small_disk: Path) -> None:
    folder = CheckpointFolder(small_disk)
    folder.save({"updates": 1}, 1)
    with pytest.raises(OSError, match="No space left on device"):
        folder.save({"text": "x" * 400_000}, 2)
    newest = folder.newest_valid()
    assert newest
    assert newest.tree == {"updates": 1}
    folder.save({"updates": 3}, 3)
    assert kept(folder) == [1, 3]


def write_as_before(path: Path, tree: Tree, score: float) -> None:
    """A file of an srlhpc whose headers name no rule."""
    write_checkpoint(path, tree, score)
    content = path.read_bytes()
    image = content[HEADER_BYTES:]
    described = {"format_version": FORMAT_VERSION, "score": score, "bytes": len(content)}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode() + image).hexdigest()
    text = f"{MAGIC}\n{json.dumps(described | {'sha256': digest})}\n"
    path.write_bytes(text.encode().ljust(HEADER_BYTES) + image)


def test_score_of_an_older_file_is_read_and_counts_only_if_it_is_over_all_episodes(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=1, keep_best=1)
    write_as_before(tmp_path / "updates-000000001.h5", {"meta": {"returns": np.full(3, 500.0)}}, 500.0)
    write_as_before(tmp_path / "updates-000000002.h5", {"meta": {"returns": np.full(100, 80.0)}}, 80.0)
    assert read_score(tmp_path / "updates-000000001.h5") == 500.0
    assert read_checkpoint(tmp_path / "updates-000000002.h5")["meta"]["returns"].size == 100
    folder.save({}, 3, 70.0)
    assert kept(folder) == [2, 3]


def test_scores_of_evaluations_come_before_means_of_training_when_the_newest_is_evaluated(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=1, keep_best=1)
    folder.save({}, 1, 300.0, "return_mean")
    folder.save({}, 2, 20.0, "evaluation")
    folder.save({}, 3, 10.0, "evaluation")
    folder.save({}, 4, None, "evaluation")
    assert kept(folder) == [2, 4]
