"""Which versions of a policy stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.data.checkpoint_names import updates_of
from srlhpc.data.version_folder import VersionFolder


@pytest.mark.parametrize(
    ("keep", "named", "left"), [(2, (), [30, 40]), (2, (10,), [10, 30, 40]), (None, (), [0, 10, 20, 30, 40])]
)
def test_newest_and_named_ones_are_kept(
    keep: int | None, named: tuple[int, ...], left: list[int], tmp_path: Path
) -> None:
    folder = VersionFolder(tmp_path / "versions" / "default", keep, named)
    for updates in (0, 10, 20, 30, 40):
        folder.save({"meta": {"updates": updates}}, updates)
    assert [updates_of(file) for file in folder.files()] == left


def test_version_that_is_written_again_after_later_ones_stays(tmp_path: Path) -> None:
    folder = VersionFolder(tmp_path / "versions" / "default", keep=1)
    folder.save({"meta": {}}, 40)
    folder.save({"meta": {}}, 20)
    assert [updates_of(file) for file in folder.files()] == [20, 40]


def test_later_ones_than_where_a_run_goes_on_are_removed(tmp_path: Path) -> None:
    folder = VersionFolder(tmp_path / "versions" / "default")
    for updates in (0, 10, 20):
        folder.save({"meta": {}}, updates)
    folder.remove_later(10)
    assert [updates_of(file) for file in folder.files()] == [0, 10]


def test_folder_of_a_run_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        VersionFolder(tmp_path / "gone" / "versions" / "default").save({"meta": {}}, 1)
    assert not (tmp_path / "gone").exists()
