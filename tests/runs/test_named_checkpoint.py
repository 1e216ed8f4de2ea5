"""Checkpoints as users name them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from srlhpc.data.checkpoint import write_checkpoint
from srlhpc.errors import UserError
from srlhpc.runs.named_checkpoint import find_checkpoint
from srlhpc.runs.paths import RunPaths
from tests.launch.making_runs import checkpoint
from tests.launch.written_runs import written_run


@pytest.fixture
def run(tmp_path: Path) -> RunPaths:
    paths = written_run(tmp_path, "mine")
    paths.checkpoints.mkdir(exist_ok=True)
    for updates in (5, 12):
        write_checkpoint(checkpoint(paths, updates), {"meta": {"updates": updates}})
    # Of two policies, of which the second has made fewer updates.
    policies = {name: {"counters": {"updates": updates}} for name, updates in (("one", 15), ("two", 8))}
    write_checkpoint(checkpoint(paths, 15), {"meta": {"updates": 15}, "policies": policies})
    return paths


def test_run_means_its_newest_whole_checkpoint_and_says_what_is_skipped(run: RunPaths, tmp_path: Path) -> None:
    checkpoint(run, 20).write_bytes(b"half of it")
    found = find_checkpoint(tmp_path, "mine")
    assert (found.file, found.run and found.run.folder) == (checkpoint(run, 15), run.folder)
    assert (found.updates, found.label) == (15, "mine@15")
    assert "updates-000000020.h5" in found.skipped[0]


def test_updates_behind_the_name_mean_that_checkpoint(run: RunPaths, tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path, "mine@5").file == checkpoint(run, 5)
    assert find_checkpoint(tmp_path, "latest@5").label == "mine@5"


def test_file_is_known_to_be_of_the_run_in_whose_folder_it_lies(run: RunPaths, tmp_path: Path) -> None:
    inside = checkpoint(run, 5)
    outside = Path(shutil.copy(inside, tmp_path / "kept.h5"))
    assert find_checkpoint(tmp_path, str(inside)).label == "mine@5"
    found = find_checkpoint(tmp_path, str(outside))
    assert (found.label, found.run, found.updates) == ("kept.h5", None, 5)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            "mine@7",
            "run mine has no checkpoint updates-000000007.h5, nor such versions; it has: updates-000000005.h5",
        ),
        (
            "mine@15",
            "'mine@15': updates-000000015.h5 counts updates of the run's first policy, and others had",
        ),
        ("mine@best", "'mine@best': behind the @ stands a number of updates, as in mine@100"),
        ("yours@7", "no run 'yours'"),
        ("nowhere/updates-000000001.h5", "there is no file .*nowhere.*; name a checkpoint file, RUN or RUN@UPDATES"),
    ],
)
def test_what_there_is_not_is_refused(run: RunPaths, tmp_path: Path, wanted: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find_checkpoint(tmp_path, wanted)


def test_run_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    written_run(tmp_path, "new")
    with pytest.raises(UserError, match="run new has no checkpoint yet"):
        find_checkpoint(tmp_path, "new")
