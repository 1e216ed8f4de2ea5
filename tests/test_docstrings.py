"""Docstrings stand alone: their first words are no rest of a sentence that the name would begin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(path.relative_to(ROOT) for room in ("srlhpc", "envs") for path in (ROOT / room).rglob("*.py"))
REST = re.compile(r"(Of|As|For|By|Those|Without) ")
"""`Of this trainer` says nothing without the name before it; `Seed of this trainer` does."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts that stand as statements, those below attributes included, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def test_docstrings_stand_alone() -> None:
    rests = [
        f"{path}:{line}: {text[:60]}"
        for path in FILES
        for line, text in docstrings(ast.parse((ROOT / path).read_text()))
        if REST.match(text)
    ]
    assert rests == [], "begin with what it is: `Seed of this trainer`, not `Of this trainer`"


def test_a_rest_of_a_sentence_is_found() -> None:
    tree = ast.parse('seed: int\n"""Of this trainer."""\nsteps: int\n"""Steps of this trainer."""')
    assert [bool(REST.match(text)) for _, text in docstrings(tree)] == [True, False]
