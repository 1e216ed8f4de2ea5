"""Making and finding runs."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.errors import UserError
from srlhpc.runs.creation import create_run, new_id, not_runs
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.search import all_runs, find_run, runs_root


def make(root: Path, name: str | None = None, job: str = "pong") -> RunPaths:
    return create_run(root, name, job, "seed: 3\n", 3, ["srlhpc", "run"])


def test_new_run_has_its_identity(tmp_path: Path) -> None:
    paths = make(tmp_path / "new" / "root", "first")
    run = read_json(paths.run)
    assert run
    assert (run["name"], run["job"], run["seed"], run["command"]) == ("first", "pong", 3, ["srlhpc", "run"])
    assert "version" in run["code"]
    assert paths.spec.read_text() == "seed: 3\n"


def test_default_name_is_job_and_id(tmp_path: Path) -> None:
    paths = make(tmp_path, job="my job!")
    assert paths.name == f"my-job--{paths.id}"


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "-option", "with space", "latest", "ä"])
def test_impossible_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be a run's name"):
        make(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_name_in_use_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "a")
    with pytest.raises(UserError, match="the name 'a' is in use"):
        make(tmp_path, "a")


def test_ids_sort_by_time() -> None:
    ids = [new_id(1.7e9 + step / 200, 1023 - step) for step in range(1000)]
    assert ids == sorted(ids)
    assert {len(identity) for identity in ids} == {10}


def test_run_is_found_by_name_id_prefix_or_latest(tmp_path: Path) -> None:
    first, second = make(tmp_path, "a"), make(tmp_path, "b")
    own = next(n for n in range(11) if first.id[:n] != second.id[:n])
    assert find_run(tmp_path, "a").folder == first.folder
    assert find_run(tmp_path, first.id).folder == first.folder
    assert find_run(tmp_path, first.id[:own]).folder == first.folder
    assert find_run(tmp_path, "latest").folder == max((first, second), key=lambda paths: paths.id).folder


def test_name_counts_before_the_start_of_an_id(tmp_path: Path) -> None:
    other = make(tmp_path, "a")
    named = make(tmp_path, other.id[:4])
    assert find_run(tmp_path, other.id[:4]).folder == named.folder


def test_prefix_of_two_ids_is_refused_with_both(tmp_path: Path) -> None:
    first, second = make(tmp_path, "a"), make(tmp_path, "b")
    common = next(first.id[:n] for n in range(10, 0, -1) if first.id[:n] == second.id[:n])
    with pytest.raises(UserError) as refusal:
        find_run(tmp_path, common)
    assert first.id in str(refusal.value)
    assert second.id in str(refusal.value)


def test_run_is_found_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    pole, other = make(tmp_path, "cartpole-1"), make(tmp_path, "latest-of-catch")
    assert find_run(tmp_path, "cart").folder == pole.folder
    assert find_run(tmp_path, "latest-").folder == other.folder
    assert find_run(tmp_path, "latest").folder == max((pole, other), key=lambda paths: paths.id).folder
    short = make(tmp_path, "cart")
    assert find_run(tmp_path, "cart").folder == short.folder


def test_beginning_of_several_names_or_ids_is_refused_with_the_newest(tmp_path: Path) -> None:
    runs = [make(tmp_path, f"pole-{number}") for number in range(12)]
    newest = max(runs, key=lambda paths: paths.id)
    with pytest.raises(UserError, match=f"names or ids of 12 runs .* begin with 'pole': {newest.name} .* and 2 older"):
        find_run(tmp_path, "pole")


def test_beginning_of_one_runs_id_and_anothers_name_is_refused(tmp_path: Path) -> None:
    first = make(tmp_path, "a")
    make(tmp_path, f"{first.id[:8]}-again")
    with pytest.raises(UserError, match="names or ids of 2 runs"):
        find_run(tmp_path, first.id[:8])


@pytest.mark.parametrize("wanted", ["carptole", "../outside", "", "."])
def test_empty_root_has_no_run(tmp_path: Path, wanted: str) -> None:
    make(tmp_path, "cartpole")
    with pytest.raises(UserError, match="no run "):
        find_run(tmp_path, wanted)


def test_misspelt_run_gets_a_suggestion(tmp_path: Path) -> None:
    make(tmp_path, "cartpole")
    with pytest.raises(UserError, match=r"; did you mean 'cartpole'\? Runs are looked for"):
        find_run(tmp_path, "carptole")


@pytest.mark.parametrize("name", ["o kill", "-x", "latest run", "größer", "a'b", "tab\tname"])
def test_renamed_run_is_found_and_quoted_in_commands(tmp_path: Path, name: str) -> None:
    create_run(tmp_path, "k", "job", "", 1, []).folder.rename(tmp_path / name)
    found = find_run(tmp_path, name)
    assert found == RunPaths(tmp_path / name) == find_run(tmp_path, "latest")
    assert shlex.split(found.typed) == [name]


@pytest.mark.parametrize("wanted", [".", "..", "../other/run", "a/b", "x" * 300, "a\0b"])
def test_name_that_no_folder_can_have_is_refused(tmp_path: Path, wanted: str) -> None:
    root = tmp_path / "runs"
    create_run(root, "k", "job", "", 1, [])
    create_run(tmp_path / "other", "run", "job", "", 1, [])
    with pytest.raises(UserError, match="^no run "):
        find_run(root, wanted)


def test_folders_and_files_of_others_under_the_root_are_skipped(tmp_path: Path) -> None:
    ours = create_run(tmp_path, "k", "job", "", 1, [])
    foreign = {"half": '{"id": "zz', "number": '{"id": 5, "name": "x", "job": 1, "command": 2}', "list": "[]"}
    foreign |= {"wandb": '{"id": "zzzzzzzzzz", "name": "x"}', "empty": "", "bytes": "\0"}
    for name, content in foreign.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(content)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "plots").mkdir()
    (tmp_path / "deeper" / "run.json").mkdir(parents=True)
    (tmp_path / "waiting").mkdir()
    os.mkfifo(tmp_path / "waiting" / "run.json")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert all_runs(tmp_path) == [ours]
    assert find_run(tmp_path, "latest") == ours
    assert {file.parent.name for file in not_runs(tmp_path)} == {*foreign, "deeper", "waiting"}


def test_attempts_are_numbered(tmp_path: Path) -> None:
    paths = make(tmp_path)
    assert paths.last_attempt() is None
    assert [paths.new_attempt().number for _ in range(3)] == [1, 2, 3]
    last = paths.last_attempt()
    assert last
    assert last.folder == paths.attempts / "0003"


def test_given_root_comes_before_variable_and_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SRLHPC_ROOT", raising=False)
    assert runs_root(None) == Path("runs").absolute()
    monkeypatch.setenv("SRLHPC_ROOT", "/elsewhere")
    assert runs_root(None) == Path("/elsewhere")
    assert runs_root("/here") == Path("/here")


def test_half_written_or_missing_json_is_none(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"a": 1')
    (tmp_path / "list.json").write_text("[1]")
    assert [read_json(tmp_path / name) for name in ("half.json", "list.json", "none.json")] == [None, None, None]
