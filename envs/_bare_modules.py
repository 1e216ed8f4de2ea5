"""Modules of installed packages without what the packages around them load: windows, plots, lists of environments."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def package_folder(name: str) -> Path:
    """Where an installed package is; it is not imported."""
    package = importlib.util.find_spec(name)
    assert package is not None
    assert package.submodule_search_locations is not None
    return Path(package.submodule_search_locations[0])


def load_bare(path: str) -> Any:
    """A module, and what it imports of its own package, run without the `__init__` of the packages that hold it.

    Nothing of the package stays among the loaded modules, so every call gives another module with state of its own,
    and an import of the package by somebody else gives that.

    Args:
        path: of the module, for example `minatar.environments.breakout`.
    """
    top, *inner = path.split(".")[:-1]
    folder = package_folder(top)
    kept = _take_out(top)
    try:
        for depth in range(len(inner) + 1):
            name = ".".join((top, *inner[:depth]))
            sys.modules[name] = _bare_package(name, folder.joinpath(*inner[:depth]))
        return importlib.import_module(path)
    finally:
        _take_out(top)
        sys.modules.update(kept)


def _bare_package(name: str, folder: Path) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    return package


def _take_out(top: str) -> dict[str, ModuleType]:
    """Forgets a package's modules; what was loaded of them."""
    loaded = [name for name in sys.modules if name.partition(".")[0] == top]
    return {name: sys.modules.pop(name) for name in loaded}
