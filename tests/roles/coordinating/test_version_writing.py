"""Versions on their way to the disk: lost ones, who hears of them, what waits."""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.forgiving import FileSystemLostError
from srlhpc.data.version_folder import VersionFolder
from srlhpc.roles.coordinating.version_writing import VersionWriting
from tests.launch.fake_runs import wait_for


class Folder(VersionFolder):
    """Saves nothing; raises, or waits for leave, where it is told to."""

    def __init__(self, path: Path, error: Exception | None = None) -> None:
        super().__init__(path)
        self.error = error
        self.may_save = threading.Event()
        self.may_save.set()
        self.saved: list[tuple[int, set[int]]] = []

    def save(self, tree: Any, updates: int, needed: Collection[int] = ()) -> Path:  # noqa: ARG002
        self.may_save.wait()
        if self.error is not None:
            raise self.error
        self.saved.append((updates, set(needed)))
        return self.path


class User:
    """Notes what it is told, and holds the version before."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def coming(self, policy: str, updates: int) -> Collection[int]:
        self.told.append(f"{policy} {updates} comes")
        return {updates - 1}

    def written(self, policy: str, updates: int) -> None:
        self.told.append(f"{policy} {updates} is written")


def part(updates: int) -> dict[str, Any]:
    return {"parameters": {}, "counters": {"updates": updates, "steps": 0, "agent_steps": 0}}


def test_user_hears_of_each_version_before_and_after_it_is_written(tmp_path: Path) -> None:
    folder, user = Folder(tmp_path), User()
    writing = VersionWriting({"default": folder}, dict, in_thread=False, user=user)
    writing.take("default", part(3))
    assert user.told == ["default 3 comes", "default 3 is written"]
    assert folder.saved == [(3, {2})]


@pytest.mark.parametrize("error", [OSError(28, "No space left"), FileSystemLostError("the file system is gone")])
def test_version_that_cannot_be_written_is_lost_and_said_of_its_policy_alone(tmp_path: Path, error: Exception) -> None:
    folders, user = {"a": Folder(tmp_path / "a", error), "b": Folder(tmp_path / "b")}, User()
    writing = VersionWriting(folders, dict, in_thread=False, user=user)
    writing.take("a", part(3))
    writing.take("b", part(4))
    (problem,) = writing.problems
    assert problem.startswith("version 3 of a is lost: ")
    assert user.told == ["a 3 comes", "b 4 comes", "b 4 is written"]
    folders["a"].error = None
    writing.take("a", part(5))
    assert writing.problems == []


def test_what_waits_for_a_slow_disk_is_bounded_and_ends_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.may_save.clear()
    writing = VersionWriting({"default": folder}, dict, in_thread=True)
    writing.take("default", part(0))
    # The first is in hand, and no longer waits.
    wait_for(lambda: not writing._waiting)
    for updates in range(1, 4):
        assert not writing.is_behind
        writing.take("default", part(updates))
    assert writing.is_behind
    assert not writing.is_idle
    folder.may_save.set()
    writing.close()
    assert [updates for updates, _ in folder.saved] == [0, 1, 2, 3]


def test_bug_in_the_writing_thread_is_not_swallowed_at_the_end(tmp_path: Path) -> None:
    writing = VersionWriting({"default": Folder(tmp_path, TypeError("no such leaf"))}, dict, in_thread=True)
    writing.take("default", part(1))
    with pytest.raises(TypeError, match="no such leaf"):
        writing.close()
