"""One file knows how a checkpoint is named."""

from pathlib import Path

import pytest

from srlhpc.data.atomic import write_atomically
from srlhpc.data.checkpoint_names import checkpoint_files, name_of, unfinished_files, updates_of

ROOT = Path(__file__).parents[2]


def test_name_of_a_checkpoint_gives_its_updates_back() -> None:
    assert updates_of(Path("runs/x") / name_of(123)) == 123


def test_only_whole_names_are_checkpoints(tmp_path: Path) -> None:
    for name in (name_of(2), name_of(10), "updates-x.h5", "updates-000000003.h5.old", f".{name_of(4)}.17.writing"):
        (tmp_path / name).touch()
    assert [updates_of(path) for path in checkpoint_files(tmp_path)] == [2, 10]


def test_interrupted_write_of_a_checkpoint_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.replace", lambda *_: None)
    write_atomically(tmp_path / name_of(7), b"content")
    write_atomically(tmp_path / "other.h5", b"content")
    assert [path.name.startswith(f".{name_of(7)}") for path in unfinished_files(tmp_path)] == [True]


@pytest.mark.parametrize("folder", ["srlhpc", "envs"])
def test_no_other_file_knows_the_name_of_a_checkpoint(folder: str) -> None:
    knows = [path.name for path in (ROOT / folder).rglob("*.py") if '"updates-' in path.read_text()]
    assert knows == (["checkpoint_names.py"] if folder == "srlhpc" else [])
