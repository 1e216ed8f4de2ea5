"""Finding code by import path: no registry, no import side effects, answers for typos."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
from types import ModuleType


class UserError(ValueError):
    """Something that the user can put right; shown without a traceback, exit code 2."""


class ClusterError(RuntimeError):
    """Something that the cluster did or refused; shown without a traceback, exit code 3."""


def did_you_mean(word: str, known: list[str]) -> str:
    """`; did you mean 'ranks'?`, or the list of known words if nothing is near, or nothing if there are none."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known are: {', '.join(sorted(known))}" if known else ""


def load_module(name: str, package: str, needs: tuple[str, ...] = ("Settings", "build")) -> ModuleType:
    """Imports the module that a spec names.

    Args:
        name: an import path (`my_lab.arena`), or a bare name, which is a module of `package`.
        package: where bare names live, for example `srlhpc.policies`.
        needs: the names that the module must offer.

    Raises:
        UserError: there is no such module, it does not import, or it lacks one of the names.
    """
    path = name if "." in name else f"{package}.{name}"
    try:
        found = importlib.util.find_spec(path)
    except (ModuleNotFoundError, ValueError) as error:
        raise UserError(f"no module '{path}' ({error}){_suggest(name, package)}") from None
    if found is None:
        raise UserError(f"no module '{path}'{_suggest(name, package)}")
    module = importlib.import_module(path)
    for attribute in needs:
        if not hasattr(module, attribute):
            raise UserError(
                f"{path} ({found.origin}) has no '{attribute}'{_suggest(name, package, offering=needs)}"
            )
    return module


def _suggest(name: str, package: str, offering: tuple[str, ...] = ()) -> str:
    if "." in name:
        return ""
    folder = importlib.import_module(package).__path__
    known = [module.name for module in pkgutil.iter_modules(folder) if not module.name.startswith("_")]
    if offering:
        known = [m for m in known if all(hasattr(importlib.import_module(f"{package}.{m}"), a) for a in offering)]
    return did_you_mean(name, known)


def missing_packages(needed: dict[str, str]) -> list[tuple[str, str]]:
    """(package, extra) of every needed package that is not installed. `needed` maps import name to extra."""
    return [(package, extra) for package, extra in needed.items() if importlib.util.find_spec(package) is None]
