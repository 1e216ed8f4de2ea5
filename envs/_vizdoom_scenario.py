"""What ViZDoom reads of a scenario, and what is set beside it; no engine is started."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from srlhpc.errors import UserError, did_you_mean

OUR_KEYS = {
    "available_game_variables": "write environment.variables",
    "mode": "the agent plays, and the engine waits for it",
    "screen_format": "write environment.colour",
    "screen_resolution": "write environment.resolution",
    "sound_enabled": "nobody listens",
    "window_visible": "nobody looks; `srlhpc eval --video` films",
}
"""Keys of a scenario that are set here, and what to write instead."""


def configured(
    scenario: str, config: Mapping[str, Any], resolution: str, *, colour: bool, variables: Sequence[str]
) -> Any:
    """A `DoomGame` that is not started yet.

    Raises:
        UserError: there is no such scenario, resolution or variable, or the scenario is not understood.
    """
    import vizdoom

    doom = vizdoom.DoomGame()
    file = _file_of(scenario)
    _read(lambda: doom.load_config(str(file)), f"environment.scenario: {file}")
    _change(doom, config)
    if not doom.get_available_buttons():
        raise UserError(f"environment.scenario: {file} has no available_buttons, so there is nothing to choose from")
    if {"-host", "-join"} & {*doom.get_game_args().split()}:
        raise UserError(f"environment.scenario: {file} is for several players (game_args), which is not supported")
    doom.set_screen_resolution(_resolution(resolution))
    doom.set_screen_format(vizdoom.ScreenFormat.CRCGCB if colour else vizdoom.ScreenFormat.GRAY8)
    doom.set_available_game_variables([_variable(name) for name in variables])
    doom.set_mode(vizdoom.Mode.PLAYER)
    doom.set_sound_enabled(False)
    doom.set_window_visible(False)
    return doom


def _change(doom: Any, config: Mapping[str, Any]) -> None:
    for key in config:
        if instead := OUR_KEYS.get(key.lower()):
            raise UserError(f"environment.config.{key}: is not for the scenario to say: {instead}")
    if config:
        _read(lambda: doom.set_config(dict(config)), "environment.config")


def _resolution(name: str) -> Any:
    import vizdoom

    sizes = vizdoom.ScreenResolution.__members__
    if (member := f"RES_{name.upper()}") in sizes:
        return sizes[member]
    known = sorted((size.removeprefix("RES_").lower() for size in sizes), key=lambda size: int(size.split("x")[0]))
    raise UserError(f"environment.resolution: ViZDoom has no {name}; it has {', '.join(known)}")


def _variable(name: str) -> Any:
    import vizdoom

    known = vizdoom.GameVariable.__members__
    if name not in known:
        raise UserError(f"environment.variables: there is no '{name}'{did_you_mean(name, list(known))}")
    return known[name]


def _file_of(scenario: str) -> Path:
    import vizdoom

    if scenario.endswith(".cfg"):
        file = Path(scenario).absolute()
        if not file.is_file():
            raise UserError(f"environment.scenario: there is no file {file}")
        return file
    folder = Path(vizdoom.scenarios_path)
    known = sorted(path.stem for path in folder.glob("*.cfg"))
    if scenario not in known:
        raise UserError(
            f"environment.scenario: ViZDoom has no '{scenario}'{did_you_mean(scenario, known)} One of yours is written "
            "as the path of its file, such as maps/mine.cfg"
        )
    return folder / f"{scenario}.cfg"


def _read(call: Callable[[], bool], where: str) -> None:
    """Lets the package read something. What it does not understand, it tells on stderr alone."""
    with tempfile.TemporaryFile() as said:
        stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            is_understood = call()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        said.seek(0)
        complaints = " ".join(said.read().decode(errors="replace").split())
    if not is_understood:
        raise UserError(f"{where}: is not understood by ViZDoom: {complaints or 'it does not say why'}")
