"""Matchmakers load all of it, and no more than numpy."""

from __future__ import annotations

from pathlib import Path

from tests.test_imports import ROOT, loaded_by

MODULES = [path.relative_to(ROOT) for path in sorted(Path(ROOT, "srlhpc", "league").rglob("[a-z]*.py"))]


def test_league_loads_neither_torch_nor_scipy() -> None:
    names = [".".join(path.with_suffix("").parts) for path in MODULES]
    assert "srlhpc.league.meta_solvers.nash" in names
    assert loaded_by(f"import {', '.join(names)}", ["torch", "scipy"]) == ""
