"""One match of Google Football's engine, without the package's own wrappers, which copy each observation several times.

Letters: P players of a team that are controlled.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import pkgutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from srlhpc.errors import UserError, did_you_mean

_NO_PLAYER = "you need to control either 0 or all players"
ACTIONS = 19
"""Actions of the package's default set."""


def load_football() -> SimpleNamespace:
    """The modules of the package that a match needs.

    It asks for an old Gym, of which nothing is used here: while it is loaded, names stand for that.
    """
    # It tells of every episode.
    logging.getLogger("absl").setLevel(logging.WARNING)
    with _standing_for_gym():
        names = ("football_env_core", "config", "observation_rotation")
        return SimpleNamespace(**{name: importlib.import_module(f"gfootball.env.{name}") for name in names})


@contextlib.contextmanager
def _standing_for_gym() -> Iterator[None]:
    if "gym" in sys.modules or "gfootball.env" in sys.modules:
        yield
        return
    names = ("gym", "gym.envs", "gym.envs.registration")
    gym, _, registration = (ModuleType(name) for name in names)
    for base in ("Env", "Wrapper", "ObservationWrapper", "RewardWrapper", "ActionWrapper"):
        setattr(gym, base, type(base, (), {}))
    registration.register = lambda **_: None  # type: ignore[attr-defined]
    sys.modules |= dict(zip(names, (gym, ModuleType("gym.envs"), registration), strict=True))
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


def check_level(level: str) -> None:
    """Refuses a level that the package does not have, which it would end the process for.

    Raises:
        UserError: with those that it has.
    """
    folder = importlib.import_module("gfootball.scenarios").__path__
    known = sorted(module.name for module in pkgutil.iter_modules(folder) if module.name != "tests")
    if level not in known:
        raise UserError(f"environment.level: Google Football has no level '{level}'{did_you_mean(level, known)}")


class Match:
    """A match, and what either team sees of it.

    Args:
        level: name of the scenario.
        left: P of the left team.
        right: P of the right team.

    Raises:
        UserError: the level does not let so many be controlled.
    """

    def __init__(self, level: str, left: int, right: int) -> None:
        self._package = load_football()
        self._config = self._package.config.Config(
            {
                "action_set": "default",
                "level": level,
                "players": [f"agent:left_players={left},right_players={right}"],
                "tracesdir": tempfile.gettempdir(),
                # The engine asks for one when it is made.
                "game_engine_random_seed": 0,
            }
        )
        self._left = left
        try:
            self._core = self._package.football_env_core.FootballEnvCore(self._config)
        except AssertionError as error:
            if _NO_PLAYER not in str(error):
                raise
            raise UserError(
                f"environment.left_players: {left} of the left and {right} of the right team are to be controlled, and "
                f"level '{level}' lets either none or all players of a team be; say so many, or choose another level"
            ) from None
        self.duration = int(self._core.observation()["steps_left"])

    def reset(self, seed: int) -> None:
        """Begins a match; all that the engine draws follows from the seed."""
        self._config["game_engine_random_seed"] = seed
        # It would keep that of the first match.
        self._config["reverse_team_processing"] = bool(seed % 2)
        self._core.reset()

    def step(self, actions: Sequence[int]) -> bool:
        """Plays one step.

        Args:
            actions: of the left team's players, then of the right team's, as these see the field.

        Returns:
            Whether the match is over.
        """
        flip = self._package.observation_rotation.flip_single_action
        turned = [*actions[: self._left], *(flip(action, self._config) for action in actions[self._left :])]
        return bool(self._core.step(turned)[2])

    @property
    def now(self) -> Mapping[str, Any]:
        """What the engine shows, as the left team sees it; valid until the next step."""
        observation: Mapping[str, Any] = self._core._observation
        return observation

    @property
    def turned(self) -> Mapping[str, Any]:
        """The same as the right team sees it, which then is called left."""
        observation: Mapping[str, Any] = self._package.observation_rotation.flip_observation(self.now, self._config)
        return observation

    def close(self) -> None:
        self._core.close()
