"""ViZDoom (Wydmuch et al. 2018, arXiv:1809.03470): Doom from the screen, by the native API of the authors' package.

Each environment is a game with an engine in a process of its own. They are asked one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, FiniteFloat, PositiveInt

from envs._single_agent import AGENT, SingleAgentRecords, single_agent_spaces
from envs._vizdoom_buttons import ButtonChoices, Presses, button_choices
from envs._vizdoom_game import Game, View
from envs._vizdoom_guard import Guard
from envs._vizdoom_scenario import configured
from srlhpc.environment import MOST_FRAMES, Array, ArraySpec, Environment, Spaces, Stack, Step
from srlhpc.errors import UserError
from srlhpc.specs.named_modules import EnvironmentSettings

TICS_PER_SECOND = 35
_SCREEN, _VARIABLES = "obs", "variables"


class Settings(EnvironmentSettings):
    """A scenario, and how it is seen and played."""

    requires: ClassVar[dict[str, str]] = {"vizdoom": "vizdoom"}

    scenario: str
    """Name of a scenario of the package, for example `basic` or `health_gathering`, or path of a `.cfg` file."""
    config: dict[str, Any] = {}
    """Keys of that file that are changed, for example `{doom_skill: 3, episode_timeout: 1050}`, the latter in tics."""
    frame_skip: PositiveInt = 4
    """Tics (35 of a second) that an action is held."""
    resolution: str = "160x120"
    """Width and height of the screen that the engine draws, one of those it has."""
    shrink: Annotated[int, Field(ge=1, le=16)] = 2
    """Squares of so many pixels become one, their mean."""
    colour: bool = False
    """Red, green and blue instead of grey."""
    stack: Annotated[int, Field(ge=1, le=MOST_FRAMES)] = 4
    """Last frames that are seen, the newest last; those before an episode are its first one."""
    actions: Presses = "single"
    """What a choice presses: nothing or a `single` button; one of all `combinations` of buttons that do not exclude
    each other, as left and right do; or `groups`, a choice for each group of buttons that exclude each other."""
    deltas: dict[str, tuple[FiniteFloat, ...]] = {}
    """Values to choose from for each button that takes a number, such as `{TURN_LEFT_RIGHT_DELTA: [-5, 5]}` (degrees a
    tic)."""
    variables: tuple[str, ...] = ()
    """Game variables that are seen beside the screen, for example `[HEALTH, AMMO2]`."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment, which starts the engines.

    Raises:
        UserError: there is no such scenario, button, variable or resolution, or an engine does not start.
    """
    return ViZDoom(settings, num_environments, seed, render)


class ViZDoom(Environment):
    """E games of one kind.

    Observations: `obs`, uint8 `[stack, height, width]`, in colour `[3 stack, height, width]`; `variables`, float32,
    as the engine gives them. A death or an exit is a termination, the limit of tics a truncation.
    """

    def __init__(self, settings: Settings, num_environments: int, seed: int, render: bool) -> None:
        dooms = [
            configured(
                settings.scenario,
                settings.config,
                settings.resolution,
                colour=settings.colour,
                variables=settings.variables,
            )
            for _ in range(num_environments)
        ]
        buttons = [button.name for button in dooms[0].get_available_buttons()]
        self._choices = button_choices(buttons, settings.actions, settings.deltas)
        self.spaces = _spaces(settings, self._choices, dooms[0].get_screen_height(), dooms[0].get_screen_width())
        self.num_environments = num_environments
        self._tics, self._shrink, self._draws = settings.frame_skip, settings.shrink, render
        self._channels = 3 if settings.colour else 1
        self._picture: Array | None = None
        self._records = SingleAgentRecords(self.spaces, num_environments)
        self._guard = Guard()
        self._games: list[Game] = []
        try:
            for number, doom in enumerate(dooms):
                self._games.append(Game(doom, self._guard, number))
            self.reset(seed)
        except BaseException:
            self.close()
            raise

    def reset(self, seed: int) -> Step:
        seeds = np.random.SeedSequence(seed).generate_state(self.num_environments).tolist()
        for env, (game, own_seed) in enumerate(zip(self._games, seeds, strict=True)):
            game.seed(own_seed)
            self._begin(env)
        return self._records.start()

    def step(self, actions: Mapping[str, Array]) -> Step:
        now, ended, chosen = self._records.now, self._records.ended, actions[AGENT][:, 0].copy()
        chosen[ended] = 0
        pressed = zip(self._choices.pressed(chosen), ended.tolist(), strict=True)
        outcomes = [
            self._begin(env) if is_over else self._act(env, buttons) for env, (buttons, is_over) in enumerate(pressed)
        ]
        now.rewards[:, 0], now.terminated[:, 0], now.truncated[:, 0] = zip(*outcomes, strict=True)
        return self._records.finish()

    def _begin(self, env: int) -> tuple[float, bool, bool]:
        view = self._games[env].begin()
        self._show(env, view, times=len(self._screen(env)) // self._channels)
        return 0.0, False, False

    def _act(self, env: int, buttons: Sequence[float]) -> tuple[float, bool, bool]:
        reward, is_over, is_cut, view = self._games[env].act(buttons, self._tics)
        if view is not None:
            self._show(env, view, times=1)
        else:
            # After a death or at an exit nothing is drawn: the frame before stands for the last one.
            self._push(env, self._screen(env)[-self._channels :].copy(), times=1)
        # Where both are set, the records count the termination.
        return reward, is_over, is_cut

    def _show(self, env: int, view: View, times: int) -> None:
        if env == 0 and self._draws:
            self._picture = view.frame
        if _VARIABLES in self._records.now.observations:
            self._records.now.observations[_VARIABLES][env, 0] = view.variables
        self._push(env, shrunk(view.frame, self._shrink), times)

    def _push(self, env: int, frame: Array, times: int) -> None:
        screen, new = self._screen(env), times * self._channels
        screen[:-new] = screen[new:]
        screen[-new:] = np.tile(frame, (times, 1, 1))

    def _screen(self, env: int) -> Array:
        screen: Array = self._records.now.observations[_SCREEN][env, 0]
        return screen

    def render(self) -> Array | None:
        if self._picture is None:
            return None
        return np.repeat(self._picture.transpose(1, 2, 0), 3 // self._channels, axis=2)

    @property
    def render_fps(self) -> float | None:
        return TICS_PER_SECOND / self._tics

    def close(self) -> None:
        for game in self._games:
            game.close()
        self._guard.close()


def _spaces(settings: Settings, choices: ButtonChoices, height: int, width: int) -> Spaces:
    factor = settings.shrink
    if height % factor or width % factor:
        raise UserError(f"environment.shrink: {factor} does not divide {width} and {height}, the resolution")
    channels = (3 if settings.colour else 1) * settings.stack
    observations = {_SCREEN: ArraySpec((channels, height // factor, width // factor), "uint8")}
    if settings.variables:
        observations[_VARIABLES] = ArraySpec((len(settings.variables),), "float32")
    # A frame in colour is three of the first axis.
    is_stack = settings.stack > 1 and not settings.colour
    return single_agent_spaces(
        observations,
        choices.space,
        frames_per_step=settings.frame_skip,
        stacks={_SCREEN: Stack(settings.stack, "newest")} if is_stack else {},
    )


def shrunk(frame: Array, factor: int) -> Array:
    """Means of squares of `factor` pixels, rounded: uint8 `[C, height, width]` to `[C, height / factor, ...]`."""
    if factor == 1:
        return frame
    area = factor * factor
    total = np.full((len(frame), frame.shape[1] // factor, frame.shape[2] // factor), area // 2, np.uint32)
    for row, column in itertools.product(range(factor), repeat=2):
        total += frame[:, row::factor, column::factor]
    return (total // area).astype(np.uint8)
