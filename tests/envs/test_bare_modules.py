from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envs._bare_modules import load_bare, package_folder


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose `__init__` may not run, with a module that needs another of its own."""
    folder = tmp_path / "bare_lab"
    (folder / "inner").mkdir(parents=True)
    for place in (folder, folder / "inner"):
        (place / "__init__.py").write_text("raise RuntimeError('windows are opened')")
    (folder / "numbers_.py").write_text("one = [1]")
    (folder / "inner" / "game.py").write_text("from bare_lab.numbers_ import one\ntwo = one + one")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_module_loads_what_it_needs_and_no_init(lab: Path) -> None:
    assert load_bare("bare_lab.inner.game").two == [1, 1]
    assert package_folder("bare_lab") == lab


def test_every_call_gives_a_module_of_its_own_and_leaves_none(lab: Path) -> None:
    assert load_bare("bare_lab.inner.game").one is not load_bare("bare_lab.inner.game").one
    assert not [name for name in sys.modules if name.startswith("bare_lab")]


def test_what_was_loaded_before_stays(lab: Path) -> None:
    (lab / "__init__.py").write_text("mark = object()")
    import bare_lab  # type: ignore[import-not-found]

    load_bare("bare_lab.inner.game")
    assert sys.modules["bare_lab"] is bare_lab
    del sys.modules["bare_lab"]


def test_a_module_that_fails_leaves_none(lab: Path) -> None:
    with pytest.raises(RuntimeError, match="windows"):
        load_bare("bare_lab.inner")
    assert not [name for name in sys.modules if name.startswith("bare_lab")]
