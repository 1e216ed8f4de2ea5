"""What to answer where a PettingZoo environment's module does not import."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import pkgutil

from srlhpc.errors import did_you_mean

_OURS = ("mpe2", "pettingzoo")
"""Packages that our extra `pettingzoo` installs."""


def what_to_do(module: str, error: ImportError) -> str:
    """The end of a sentence; "" if nothing is known."""
    package = module.partition(".")[0]
    if not _is_installed(package):
        return "; pip install 'srlhpc[pettingzoo]'" if package in _OURS else ""
    if module.startswith("pettingzoo.mpe."):
        moved = module.replace("pettingzoo.mpe.", "mpe2.")
        how = "" if _is_installed("mpe2") else " (pip install 'srlhpc[pettingzoo]')"
        return f"; write it as {moved}{how}"
    missing = error.name or ""
    if missing == module:
        return did_you_mean(module, _beside(module))
    if missing and not _is_installed(missing.partition(".")[0]):
        family = module.split(".")[1] if package == "pettingzoo" and "." in module else ""
        extras = importlib.metadata.metadata("pettingzoo").get_all("Provides-Extra") or () if family else ()
        return f"; pip install 'pettingzoo[{family}]'" if family in extras else ""
    return ""


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _beside(module: str) -> list[str]:
    """The modules of the package that should have this one."""
    parent, _, _ = module.rpartition(".")
    spec = importlib.util.find_spec(parent) if parent else None
    folders = list((spec.submodule_search_locations if spec else None) or ())
    return [f"{parent}.{found.name}" for found in pkgutil.iter_modules(folders) if not found.name.startswith("_")]
