"""Finding code by import path: no registry, no import side effects, answers for typos."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import traceback
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from srlhpc.errors import UserError, did_you_mean


def load_module(name: str, package: str, needs: tuple[str, ...] = ("Settings", "build")) -> ModuleType:
    """Imports the module that a spec names.

    Args:
        name: an import path (`my_lab.arena`), or a bare name: a module of `package`, else a module of the user's own.
        package: where bare names live, for example `srlhpc.policies`.
        needs: the names that the module must offer.

    Raises:
        UserError: there is no such module, it does not import, or it lacks one of the names.
    """
    path = name if "." in name else f"{package}.{name}"
    if not all(word.isidentifier() for word in path.split(".")):
        raise UserError(f"'{name}' is no import path; write a module's name, for example my_lab.arena")
    try:
        found = _find(path)
    except ModuleNotFoundError as error:
        raise UserError(f"no module '{path}' ({error}){_suggest(path, package, needs)}") from None
    if found is None and "." not in name and (found := _find(name)) is not None:
        path = name
    if found is None:
        raise UserError(f"no module '{path}'{_suggest(path, package, needs)}")
    module = _import(path)
    for attribute in needs:
        if not hasattr(module, attribute):
            raise UserError(
                f"{path} ({found.origin}) has no '{attribute}', which it must have{_suggest(path, package, needs)}"
            )
    return module


def _find(path: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(path)
    except ModuleNotFoundError:
        raise
    except ValueError:
        # A module without a spec, such as the script that runs.
        return None
    except Exception as error:
        raise _does_not_import(path, error) from error


def _import(path: str) -> ModuleType:
    try:
        return importlib.import_module(path)
    except Exception as error:
        raise _does_not_import(path, error) from error


def _does_not_import(path: str, error: Exception) -> UserError:
    """Names the line of the user's code that fails."""
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}"
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename}:{last.lineno}"
    return UserError(f"{path} does not import: {where}: {type(error).__name__}: {error}; correct it there")


def _suggest(path: str, default: str, needs: tuple[str, ...]) -> str:
    """The modules beside the wanted one that offer what is needed, as a spec names them; none of them is imported."""
    package, _, name = path.rpartition(".")
    try:
        parent = importlib.util.find_spec(package) if package else None
    except ModuleNotFoundError:
        parent = None
    folders = list(parent.submodule_search_locations or ()) if parent else []
    prefix = "" if package in ("", default) else f"{package}."
    known = [f"{prefix}{module.name}" for module in pkgutil.iter_modules(folders) if _offers(module, needs)]
    return did_you_mean(f"{prefix}{name}", known)


def _offers(module: pkgutil.ModuleInfo, needs: tuple[str, ...]) -> bool:
    spec = module.module_finder.find_spec(module.name, None)
    if module.name.startswith("_") or spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return False
    names: set[str] = set()
    for statement in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            names.add(statement.name)
        elif isinstance(statement, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in statement.names)
    return names.issuperset(needs)


def missing_packages(needed: dict[str, str]) -> list[tuple[str, str]]:
    """(package, extra) of every needed package that is not installed. `needed` maps import name to extra."""
    return [(package, extra) for package, extra in needed.items() if importlib.util.find_spec(package) is None]
