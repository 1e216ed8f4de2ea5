"""Versions that runs keep: when they are written, what is in them, and what a resumed run does with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from srlhpc.cli.checkpoint import command
from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.checkpoint_names import updates_of
from srlhpc.errors import UserError
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.named_checkpoint import find_checkpoint
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.starting_weights import find_source
from srlhpc.runs.state import run_state
from srlhpc.runs.versions import version_files, version_folder, version_lines, version_named
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import load_experiment
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_mpi_runs import ranks

CATCH = {"factory": "catch", "rows": 4, "columns": 3}


def job(updates: int, versions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return settings(CATCH, stop={"updates": updates}, checkpoint={"every_updates": 4}, **changes) | {
        "versions": versions
    }


def trained(folder: Path, what: dict[str, Any]) -> RunPaths:
    paths = make_run(folder, what)
    run_serial(paths, make_attempt(paths, what)[0])
    return paths


def kept(paths: RunPaths) -> list[int]:
    return [updates_of(file) for file in version_files(paths).get("default", [])]


def test_versions_are_written_when_they_are_due_and_the_newest_and_tagged_ones_kept(tmp_path: Path) -> None:
    paths = trained(tmp_path, job(8, {"every_updates": 2, "keep": 2, "tags": {"early": 1, "end": 8}}))
    assert kept(paths) == [1, 6, 8]
    assert version_named(paths, "default", "early") == version_named(paths, "default", "1")
    (line,) = version_lines(run_state(paths))
    assert line.startswith("  versions of default: 3, the newest after 8 updates, ")


def test_version_is_what_a_checkpoint_of_the_same_update_holds_of_who_acts(tmp_path: Path) -> None:
    paths = trained(tmp_path, job(8, {"every_updates": 4}, normalize={"observations": True}))
    assert kept(paths) == [0, 4, 8]
    for updates in (4, 8):
        version = read_checkpoint(version_named(paths, "default", str(updates)))["policies"]["default"]
        whole = tree_of(paths, updates)["policies"]["default"]
        assert set(version) == {"parameters", "counters"}
        assert version["counters"] == whole["counters"]
        for name, array in whole["parameters"].items():
            np.testing.assert_array_equal(version["parameters"][name], array)


def test_run_without_versions_has_no_folder_of_them(tmp_path: Path) -> None:
    paths = trained(tmp_path, job(1, {}))
    assert not paths.versions.exists()
    with pytest.raises(
        UserError, match=r"^run run has no version of policy default yet; it keeps some if its spec sets ver"
    ):
        version_named(paths, "default", "1")


def test_resumed_run_writes_again_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    what = job(8, {"every_updates": 3, "keep": None})
    paths = trained(tmp_path, what)
    assert kept(paths) == [0, 3, 6]
    before = {file: read_checkpoint(file) for file in version_files(paths)["default"]}
    # A version of a future that is not to be.
    version_named(paths, "default", "6").rename(paths.versions_of("default") / "updates-000000007.h5")
    run_serial(paths, make_attempt(paths, what, checkpoint(paths, 4))[0])
    assert kept(paths) == [0, 3, 6]
    for file, tree in before.items():
        again = read_checkpoint(file)["policies"]["default"]["parameters"]
        assert all(
            np.array_equal(again[name], array) for name, array in tree["policies"]["default"]["parameters"].items()
        )


@pytest.mark.parametrize("given", ["2", "tagged"])
def test_policy_begins_with_a_version_of_another_run(given: str, tmp_path: Path) -> None:
    paths = trained(tmp_path, job(4, {"every_updates": 2, "tags": {"tagged": 2}}))
    source = find_source("where", f"{paths.folder}@{given}", "default")
    assert (source.run, int(source.tree["meta"]["updates"])) == (paths, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("run@3", "run run has no version of policy default after 3 updates; it has: tagged, 0, 2, 4"),
        ("run@taged", "run run has no version 'taged'; did you mean 'tagged'?; it has: tagged, 0, 2, 4"),
        (
            "run@late",
            "has no version of policy default after 3 updates, when 'late' is due; it has: tagged, 0, 2, 4",
        ),
        ("other@2", "other@2; name a checkpoint file, the folder of a run, or a version: RUN@UPDATES"),
    ],
)
def test_version_that_is_not_there_is_refused_with_those_that_are(given: str, message: str, tmp_path: Path) -> None:
    paths = trained(tmp_path, job(4, {"every_updates": 2, "tags": {"tagged": 2, "late": 3}}))
    version_named(paths, "default", "3").unlink()
    with pytest.raises(UserError) as refused:
        find_source("policies.default.weights_from", str(tmp_path / given), "default")
    assert str(refused.value).startswith("policies.default.weights_from: ")
    assert str(refused.value).endswith(message)


def test_policy_begins_with_a_checkpoint_after_so_many_updates_where_there_is_no_version(tmp_path: Path) -> None:
    paths = trained(tmp_path, job(4, {"every_updates": 3}))
    assert find_source("where", f"{paths.folder}@4", "default").file == checkpoint(paths, 4)


def test_versions_are_found_where_the_modules_of_their_run_are_gone(tmp_path: Path) -> None:
    paths = trained(tmp_path, job(4, {"every_updates": 2, "tags": {"tagged": 2}}))
    paths.spec.write_text(paths.spec.read_text().replace("factory: catch", "factory: no.longer.there"))
    assert version_named(paths, "default", "tagged") == version_named(paths, "default", "2")


def test_version_that_was_lost_is_written_again_where_the_run_goes_on(tmp_path: Path) -> None:
    what = job(8, {"every_updates": 4, "keep": None})
    paths = trained(tmp_path, what)
    lost = version_named(paths, "default", "4")
    lost.unlink()
    run_serial(paths, make_attempt(paths, what, checkpoint(paths, 4))[0])
    assert kept(paths) == [0, 4, 8]


def test_version_with_a_tag_stays_until_the_run_comes_so_far_again(tmp_path: Path) -> None:
    versions = {"every_updates": 4, "tags": {"later": 7}}
    what = job(8, versions)
    paths = trained(tmp_path, what)
    tagged = version_named(paths, "default", "later")
    folder = version_folder(paths, "default", load_experiment(paths.spec).versions)
    folder.remove_later(4)
    assert kept(paths) == [0, 4, 7]
    assert tagged.exists()


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"tags": {"_x": 1}}, "a tag begins with a letter"),
        ({"tags": {"-1": 1}}, "a tag begins with a letter"),
        ({"tags": {"end": 9}}, "is 9, and the run ends after stop.updates 8; lower it, or raise stop.updates"),
    ],
)
def test_tag_that_never_comes_is_refused(versions: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ExperimentSpec.model_validate(job(8, versions))


def test_versions_are_listed_with_the_checkpoints(tmp_path: Path) -> None:
    paths = trained(tmp_path, job(4, {"every_updates": 2, "tags": {"tagged": 2}}))
    done = CliRunner().invoke(command, ["list", paths.name, "--root", str(tmp_path)])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "checkpoints/updates-000000001.h5",
        "checkpoints/updates-000000004.h5",
        *(f"versions/default/updates-00000000{updates}.h5" for updates in (0, 2, 4)),
    ]
    assert [line for line in lines if line.endswith("  tagged")] == lines[3:4]


def test_versions_are_called_as_checkpoints_are(tmp_path: Path) -> None:
    paths = trained(tmp_path, job(4, {"every_updates": 2, "tags": {"tagged": 2}}))
    for wanted in (f"{paths.name}@2", f"{paths.name}@tagged"):
        found = find_checkpoint(tmp_path, wanted)
        assert (found.updates, found.run, set(found.tree["policies"])) == (2, paths, {"default"})
    # A checkpoint, which holds more, is preferred.
    assert find_checkpoint(tmp_path, f"{paths.name}@4").file == checkpoint(paths, 4)


@pytest.mark.mpi
def test_ranks_keep_versions_of_each_policy(tmp_path: Path) -> None:
    what = job(
        6, {"every_updates": 2}, actors={"ranks": 1, "ring": 1, "environments": 8, "inference": {"kind": "inline"}}
    )
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
    assert kept(paths) == [0, 2, 4, 6]
    change_job(paths, what | {"stop": {"updates": 8}})
    with ranks(paths, what | {"stop": {"updates": 8}}, checkpoint(paths, 6)) as run:
        run.wait()
    assert kept(paths) == [0, 2, 4, 6, 8]
    last = read_checkpoint(version_named(paths, "default", "8"))["policies"]["default"]["parameters"]
    whole = tree_of(paths, 8)["policies"]["default"]["parameters"]
    assert all(np.array_equal(last[name], array) for name, array in whole.items())
