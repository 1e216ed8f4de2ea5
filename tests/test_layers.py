"""Imports point down only."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = [
    "errors",
    "environment import_path",
    "specs",
    "rl",
    "league",
    "data",
    "policies",
    "algorithms",
    "comm",
    "roles",
    "plan",
    "slurm",
    "runs",
    "pictures",
    "ranks",
    "playing",
    "evaluation recording arena",
    "launch",
    "doctor",
    "bench",
    "cli",
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names.split()}
STRANGERS = {"plan": "rl policies algorithms roles", "slurm": "rl policies algorithms roles comm", "launch": "roles"}
"""Rooms that a room may not import, though they are lower."""
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "srlhpc").rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


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
        if name.startswith("srlhpc.") and name.split(".")[1] in STRANGERS.get(layer, "").split():
            found.append(f"{module} imports {name}; {layer}/ knows nothing of {name.split('.')[1]}/")
    return found


def circle(imports: Mapping[str, Collection[str]]) -> list[str]:
    """The modules of a circle of imports, the first one again at the end; empty if there is none."""
    done: set[str] = set()
    way: list[str] = []

    def walk(module: str) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return []
        way.append(module)
        found = next((found for name in sorted(imports[module]) if (found := walk(name))), [])
        way.pop()
        done.add(module)
        return found

    return next((found for module in sorted(imports) if (found := walk(module))), [])


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_of_a_module_point_down(path: Path) -> None:
    assert complaints(module_of(path), ast.parse((ROOT / path).read_text())) == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    trees = {module_of(path): ast.parse((ROOT / path).read_text()) for path in FILES}

    def modules(module: str) -> set[str]:
        # `from srlhpc.a import b` means the module a.b, or what a defines.
        names = (name if name in trees else name.rpartition(".")[0] for name in imported(trees[module]))
        return {name for name in names if name in trees and name != module and not module.startswith(f"{name}.")}

    assert circle({module: modules(module) for module in trees}) == []


def test_a_circle_of_imports_is_found() -> None:
    assert circle({"a": ["b"], "b": ["c", "d"], "c": [], "d": ["b"]}) == ["b", "d", "b"]
    assert circle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_every_package_of_srlhpc_has_a_layer() -> None:
    assert {path.parts[1].removesuffix(".py") for path in FILES} - {"__init__"} <= set(HEIGHT)


def test_an_import_of_a_higher_layer_is_found() -> None:
    assert complaints("srlhpc.rl.bad", ast.parse("from srlhpc.plan.planner import plan")) == [
        "srlhpc.rl.bad imports srlhpc.plan.planner.plan, which is in a higher layer; move what both need down"
    ]


def test_an_import_of_an_environment_is_found() -> None:
    assert complaints("srlhpc.roles.bad", ast.parse("import envs.catch")) == [
        "srlhpc.roles.bad imports envs.catch; srlhpc never imports an environment, specs name it"
    ]


def test_architecture_has_the_rooms_in_this_order_and_what_they_import() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"(?m)^\| `(\w+)` \| .+ \| ([\w, ]*)\|$", text)
    assert [room for room, _ in rows] == " ".join(LAYERS).split()
    listed = {
        room: {*names.replace(",", "").split(), room, "errors", "environment", "import_path"} for room, names in rows
    }
    for path in FILES:
        room = path.parts[1].removesuffix(".py")
        names = {name.split(".")[1] for name in imported(ast.parse((ROOT / path).read_text())) if "srlhpc." in name}
        unlisted = names & set(HEIGHT) - listed.get(room, set(HEIGHT))
        assert not unlisted, f"{path} imports {unlisted}; add it to the row of {room} in docs/architecture.md"
