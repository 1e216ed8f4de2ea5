"""What an environment lacks that could not be imported, and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from envs._gymnasium_names import home_of_module, newest_version

OUR_EXTRAS = {
    "mujoco": "srlhpc[mujoco]",
    "ale_py": "srlhpc[atari]",
    "pygame": "srlhpc[video]",
    "Box2D": "srlhpc[box2d]",
}
"""Packages that an extra of ours installs."""


def what_is_missing(name: str, error: Exception) -> str:
    """The rest of a sentence about the environment `name`, which could not be made for this error."""
    if newest := newest_version(name):
        return f"does not work here: {error} Its newest version is '{newest}'"
    cause = error if isinstance(error, ModuleNotFoundError) and error.name else error.__cause__
    module = cause.name if isinstance(cause, ModuleNotFoundError) and cause.name else ""
    package = module.partition(".")[0]
    if package and importlib.util.find_spec(package) is None:
        if "pip install" in str(error) and package not in OUR_EXTRAS:
            return f"cannot be made: {error}"
        return f"needs the package '{package}', which is not installed here{_how_to_install(name, package)}"
    if package:
        return f"needs '{module}', which the installed '{package}' does not have: {cause}"
    if cause is None or "pip install" in str(error):
        return f"cannot be made: {error}"
    return f"cannot be made; a package that it needs is installed, but does not import: {cause}"


def _how_to_install(name: str, package: str) -> str:
    if package in OUR_EXTRAS:
        return f": pip install '{OUR_EXTRAS[package]}'"
    if home := home_of_module(package):
        return f": pip install {home.install}"
    if package == name.partition(":")[0].partition(".")[0]:
        return "; install it, or start in the folder that has it"
    for extra in importlib.metadata.metadata("gymnasium").get_all("Provides-Extra") or ():
        needs = importlib.metadata.requires("gymnasium") or ()
        if any(need.lower().startswith(package.lower()) and f'extra == "{extra}"' in need for need in needs):
            return f": pip install 'gymnasium[{extra}]'"
    return ""
