"""What to answer where Gymnasium does not know an id: a newer version, the module that registers it, near names."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs._near_names import near_names


@dataclass(frozen=True)
class Home:
    """A package whose environments are registered when a module of it is imported."""

    module: str
    install: str
    """What pip is told."""
    ids: str
    """Pattern of the beginning of its ids."""


_OLD_GAMES = "Pong|Breakout|Qbert|Seaquest|SpaceInvaders|BeamRider|Enduro|MsPacman|MontezumaRevenge"

HOMES = (
    Home("ale_py", "'srlhpc[atari]'", rf"ALE/|\w+NoFrameskip-|({_OLD_GAMES})(-ram)?(Deterministic)?-v[04]"),
    Home("minigrid", "'srlhpc[minigrid]'", "MiniGrid-|BabyAI-"),
    Home("vizdoom.gymnasium_wrapper", "'srlhpc[vizdoom]'", "Vizdoom"),
    Home("highway_env", "highway-env", "(highway|merge|roundabout|parking|intersection|racetrack|exit|u-turn)-"),
    Home("gymnasium_robotics", "gymnasium-robotics", "Fetch|Hand(Man|Rea)|(Ant|Point)Maze_|Adroit|Franka"),
    Home("miniworld", "miniworld", "MiniWorld-"),
    Home("panda_gym", "panda-gym", "Panda"),
    Home("metaworld", "metaworld", "Meta-World/"),
    Home("shimmy", "'shimmy[dm-control]'", "dm_control/"),
    Home("minihack", "minihack", "MiniHack-"),
    Home("nle", "nle", "NetHack"),
    Home("flappy_bird_gymnasium", "flappy-bird-gymnasium", "FlappyBird-"),
)


def home_of_module(package: str) -> Home | None:
    """The known package of that import name."""
    return next((home for home in HOMES if home.module.partition(".")[0] == package), None)


def newest_version(name: str) -> str | None:
    """The id, as the user would write it, of the newest registered version of an environment; None if there is none."""
    import gymnasium
    from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id

    module, bare = _split(name)
    try:
        namespace, own_name, _ = parse_env_id(bare)
    except gymnasium.error.Error:
        return None
    version = find_highest_version(namespace, own_name)
    newest = get_env_id(namespace, own_name, version)
    return None if version is None or newest == bare else _written(module, newest)


def what_to_write_instead(name: str) -> str:
    """A sentence for an id that is not registered. May import the module that seems to register it."""
    module, bare = _split(name)
    if newest := newest_version(name):
        return f"its newest version is '{newest}'"
    if not module and (ours := _environment_of_ours(bare)):
        return f"take environment: {{{ours}}}"
    home = next((home for home in HOMES if re.match(home.ids, bare)), None)
    if home and not _is_installed(home.module):
        return (
            f"it seems to come with a package that is not installed here: pip install {home.install}, then write the "
            f"id as {home.module}:{bare}"
        )
    modules = [home.module] if home else [*_modules_that_name(bare)]
    failures = []
    for other in modules:
        try:
            importlib.import_module(other)
        except Exception as error:
            failures.append(f"importing {other}, which should register it, fails: {type(error).__name__}: {error}")
    return _registered_by(bare, modules) or "; ".join(failures) or _near(module or next(iter(modules), ""), bare)


def _environment_of_ours(bare: str) -> str:
    """Settings of an environment of this package that plays the same; empty without one."""
    if game := re.fullmatch(r"MinAtar/(\w+)-v\d+", bare):
        return f"factory: minatar, game: {_in_lower_case(game[1])}"
    if task := re.fullmatch(r"dm_control/(\w+)-(\w+)-v\d+", bare):
        return f"factory: dm_control, domain: {task[1]}, task: {task[2]}"
    if scenario := re.fullmatch(r"Vizdoom([A-Za-z]+)-v\d+", bare):
        return f"factory: vizdoom, scenario: {_in_lower_case(scenario[1])}"
    if re.match("MiniGrid-|BabyAI-", bare):
        return f"factory: minigrid, id: {bare}"
    return ""


def _in_lower_case(name: str) -> str:
    """`SpaceInvaders` as `space_invaders`."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _split(name: str) -> tuple[str, str]:
    module, _, bare = name.rpartition(":")
    return module, bare


def _registered_by(bare: str, modules: list[str]) -> str:
    import gymnasium

    if bare not in gymnasium.registry:
        return newer if (newer := _newer_in(bare, modules)) else ""
    atari = gymnasium.registry[bare].kwargs.get("game") if modules == ["ale_py"] else None
    faster = f"; or, faster, take environment: {{factory: atari, game: {atari}}}" if atari else ""
    return f"{modules[0]} registers it on import: write the id as {modules[0]}:{bare}{faster}"


def _newer_in(bare: str, modules: list[str]) -> str:
    newest = newest_version(f"{modules[0]}:{bare}") if modules else None
    return f"its newest version is '{newest}'" if newest else ""


def _near(module: str, bare: str) -> str:
    import gymnasium

    near = near_names(bare, (other for other in gymnasium.registry if newest_version(other) is None))
    if near:
        return f"did you mean {' or '.join(repr(_written(module, other)) for other in near)}?"
    after = f" after importing {module}" if module else ""
    return (
        f"it is not registered{after}; name the module whose import registers it before the id, as in "
        "my_lab.envs:MyEnv-v0"
    )


def _written(module: str, bare: str) -> str:
    """An id with the module that must be imported first; Gymnasium's own need none."""
    import gymnasium

    entry: Any = gymnasium.registry[bare].entry_point
    is_gymnasiums = isinstance(entry, str) and entry.startswith("gymnasium.")
    return f"{module}:{bare}" if module and not is_gymnasiums else bare


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def _modules_that_name(bare: str) -> Iterator[str]:
    """Modules of installed packages that need Gymnasium and have the id in their text."""
    for package in sorted(_packages_on_gymnasium()):
        spec = importlib.util.find_spec(package)
        for folder in map(Path, (spec.submodule_search_locations if spec else None) or ()):
            for file in sorted(folder.rglob("*.py")):
                with contextlib.suppress(OSError):
                    if re.search(rf"""["']{re.escape(bare)}["']""", file.read_text(errors="replace")):
                        yield ".".join((package, *file.relative_to(folder).with_suffix("").parts)).removesuffix(
                            ".__init__"
                        )
                        return


def _packages_on_gymnasium() -> set[str]:
    packages: set[str] = set()
    for distribution in importlib.metadata.distributions():
        needs = [need for need in distribution.requires or () if "extra ==" not in need]
        if any(re.match(r"gymnasium\b(?!-)", need) for need in needs) and distribution.name != "srlhpc":
            packages |= set((distribution.read_text("top_level.txt") or distribution.name.replace("-", "_")).split())
    return packages
