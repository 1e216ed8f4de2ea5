"""Imports point down only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = [
    "environment objects",
    "specs",
    "rl",
    "data",
    "policies",
    "algorithms",
    "comm",
    "roles",
    "launch",
    "bench",
    "cli",
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names.split()}
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "srlhpc").rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the absolute path of the module"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def complaints(module: str, tree: ast.AST) -> list[str]:
    layer = module.split(".")[1] if "." in module else ""
    found = []
    for name in imported(tree):
        if name.split(".")[0] == "envs":
            found.append(f"{module} imports {name}; srlhpc never imports an environment, specs name it")
        if name.startswith("srlhpc.") and HEIGHT.get(name.split(".")[1], -1) > HEIGHT.get(layer, -1):
            found.append(f"{module} imports {name}, which is in a higher layer; move what both need down")
    return found


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_of_a_module_point_down(path: Path) -> None:
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    assert complaints(module, ast.parse((ROOT / path).read_text())) == []


def test_every_package_of_srlhpc_has_a_layer() -> None:
    assert {path.parts[1].removesuffix(".py") for path in FILES} - {"__init__"} <= set(HEIGHT)


def test_an_import_of_a_higher_layer_is_found() -> None:
    assert complaints("srlhpc.rl.bad", ast.parse("from srlhpc.launch.plan import plan")) == [
        "srlhpc.rl.bad imports srlhpc.launch.plan.plan, which is in a higher layer; move what both need down"
    ]


def test_an_import_of_an_environment_is_found() -> None:
    assert complaints("srlhpc.roles.bad", ast.parse("import envs.catch")) == [
        "srlhpc.roles.bad imports envs.catch; srlhpc never imports an environment, specs name it"
    ]
