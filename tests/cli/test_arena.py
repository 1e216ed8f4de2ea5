"""`srlhpc arena` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from tests.arena.players import always, job_of, make_players


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    make_players(root, "rps", job_of(), always(0), always(1))
    make_players(root, "uneven", job_of({"factory": "tests.arena.uneven"}), always(0, 2), always(1, 2))
    return root


@pytest.fixture
def call(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command and gives its standard output, then its standard error."""
    monkeypatch.setenv("SRLHPC_ROOT", str(root))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str, code: int = 0) -> str:
        assert run_command_line(["arena", *arguments]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return run


def test_table_is_printed_within_80_columns(call: Callable[..., str]) -> None:
    lines = call("rps@1", "rps@2", "--episodes", "4").splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[:2] for line in lines if "rps@" in line] == [["1", "rps@1"], ["2", "rps@2"]]


def test_json_is_strict(call: Callable[..., str]) -> None:
    result = json.loads(call("rps@1", "rps@2", "--episodes", "3", "--seed", "4", "--json"))
    assert (result["episodes"], result["seed"], result["drawn"]) == (3, 4, False)
    assert result["games"]["win_rates"] == [[None, 0.0], [1.0, None]]


def test_picture_is_drawn_with_returns_of_sides_that_are_not_alike(call: Callable[..., str], tmp_path: Path) -> None:
    sides = ("--side", "lone", "--side", "pack_.*")
    assert f"wrote {tmp_path / 'out.png'}" in call(
        "uneven@1", "uneven@2", *sides, "--episodes", "2", "--out", str(tmp_path / "out.png")
    )
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_picture_that_cannot_be_written_is_refused_before_anything_is_played(
    call: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srlhpc.arena.matches.play", None)
    assert "no format of pictures" in call("rps@1", "rps@2", "--out", str(tmp_path / "out.xyz"), code=2)
    assert "make it first" in call("rps@1", "rps@2", "--out", str(tmp_path / "nowhere" / "out.png"), code=2)


def test_episodes_that_are_given_up_are_told_and_the_exit_code_is_1(call: Callable[..., str]) -> None:
    said = call(
        *("uneven@1", "uneven@2", "--side", "lone", "--side", "pack_.*"),
        *("--episodes", "2", "--max-episode-steps", "1"),
        code=1,
    )
    assert "4 episodes of all pairings were given up, because one had not ended after 1 steps" in said


def test_broken_newest_checkpoint_is_skipped_and_named(call: Callable[..., str], tmp_path: Path) -> None:
    paths = make_players(tmp_path, "rps", job_of(), always(0), always(1))
    (paths.checkpoints / "updates-000000009.h5").write_bytes(b"half of it")
    said = call("rps", "rps@1", "--root", str(tmp_path), "--episodes", "1")
    assert "skipped: " in said
    assert "rps@2" in said


def test_player_alone_is_refused(call: Callable[..., str]) -> None:
    assert call("rps", code=2).startswith("srlhpc: rps@2 is the only player; name another run")
