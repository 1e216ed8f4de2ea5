"""Trying a folder out, for real."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from srlhpc.doctor import folder_probe
from srlhpc.doctor.folder_probe import KEPT_OUT, existing, over_quota, probe_folder


def test_healthy_folder_is_locked_and_left_clean(tmp_path: Path) -> None:
    facts = probe_folder(tmp_path)
    assert (facts.error, facts.lock) == ("", KEPT_OUT)
    assert facts.free_bytes > 0
    assert list(tmp_path.iterdir()) == []


def test_lock_that_lets_another_process_in_is_reported(tmp_path: Path) -> None:
    assert probe_folder(tmp_path, lambda _: "opened").lock == "opened"


def test_hanging_second_process_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_probe, "_LOCK_SECONDS", 0.01)
    assert probe_folder(tmp_path).lock == "no answer for 0.01 s"
    assert list(tmp_path.iterdir()) == []


def test_missing_locks_give_the_systems_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(folder_probe, "hold_locked", refuse)
    assert probe_folder(tmp_path).lock == "not locked: no locks available"


def test_folder_without_hard_links_is_an_error_and_left_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    assert probe_folder(tmp_path).error == "Operation not permitted"
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_gives_the_nearest_that_exists(tmp_path: Path) -> None:
    assert existing(tmp_path / "a" / "b") == tmp_path


def test_complaint_of_quota_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "quota"
    fake.write_text("#!/bin/sh\necho 'Disk quotas for user me:'; echo 'In block grace period on /home'; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert over_quota() == "Disk quotas for user me: In block grace period on /home"


def test_missing_quota_command_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert over_quota() == ""
