"""Finding modules by name, and the answers to typos."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from srlhpc.errors import UserError
from srlhpc.import_path import load_module, missing_packages


def test_bare_name_is_a_module_of_the_package() -> None:
    assert load_module("catch", "envs").__name__ == "envs.catch"


def test_import_path_is_that_module() -> None:
    assert load_module("envs.catch", "srlhpc.policies").__name__ == "envs.catch"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cach", "no module 'envs.cach'; did you mean 'catch'?"),
        ("envs.cach", "no module 'envs.cach'; did you mean 'catch'?"),
        ("no_lab.arena", "no module 'no_lab.arena' (No module named 'no_lab')"),
        ("../arena", "'../arena' is no import path; write a module's name, for example my_lab.arena"),
        ("", "'' is no import path; write a module's name, for example my_lab.arena"),
    ],
)
def test_missing_module_gets_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        load_module(name, "envs")
    assert str(caught.value) == message


def test_module_that_lacks_a_name_suggests_those_that_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lab_of_objects"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "arena.py").write_text("class Settings: ...\ndef build(): ...\n")
    (package / "helpers.py").write_text("raise RuntimeError('a suggestion imports nothing')\n")
    (package / "arenas.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError) as caught:
        load_module("arenas", "lab_of_objects")
    assert str(caught.value) == (
        f"lab_of_objects.arenas ({package}/arenas.py) has no 'Settings', which it must have; did you mean 'arena'?"
    )
    assert "lab_of_objects.arena" not in sys.modules


def test_module_that_does_not_import_names_the_line_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_arena.py").write_text("import sys\n1 / 0\n")
    (tmp_path / "garbled_arena.py").write_text("x = (\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"^broken_arena does not import: .*broken_arena\.py:2: ZeroDivisionError: "):
        load_module("broken_arena", "envs")
    with pytest.raises(UserError, match=r"^garbled_arena does not import: .*garbled_arena\.py:1: SyntaxError: "):
        load_module("garbled_arena", "envs")


def test_module_without_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typed_in", ModuleType("typed_in"))
    with pytest.raises(UserError, match=r"no module 'envs\.typed_in'"):
        load_module("typed_in", "envs")


def test_missing_packages_are_named_with_their_extra() -> None:
    assert missing_packages({"json": "a", "no_such_package": "b"}) == [("no_such_package", "b")]


def test_bare_name_of_the_users_own_module_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arena_of_mine.py").write_text("Settings = build = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_module("arena_of_mine", "envs").__name__ == "arena_of_mine"
