"""Buttons of ViZDoom as choices of an agent; knows names alone, not the package.

Letters: E environments, B available buttons.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from srlhpc.environment import Array, Discrete, FloatArray, MultiDiscrete
from srlhpc.errors import UserError, did_you_mean

Presses = Literal["single", "combinations", "groups"]

MOST_COMBINATIONS = 512
"""Most choices of `combinations`. Those of `deathmatch` would be thousands."""

_WEAPONS = (*(f"SELECT_WEAPON{number}" for number in range(10)), "SELECT_NEXT_WEAPON", "SELECT_PREV_WEAPON")
GROUPS = (
    ("MOVE_FORWARD", "MOVE_BACKWARD", "MOVE_FORWARD_BACKWARD_DELTA"),
    ("MOVE_LEFT", "MOVE_RIGHT", "MOVE_LEFT_RIGHT_DELTA"),
    ("TURN_LEFT", "TURN_RIGHT", "TURN180", "TURN_LEFT_RIGHT_DELTA"),
    ("LOOK_UP", "LOOK_DOWN", "LOOK_UP_DOWN_DELTA"),
    ("MOVE_UP", "MOVE_DOWN", "MOVE_UP_DOWN_DELTA"),
    ("JUMP", "CROUCH"),
    _WEAPONS,
    ("SELECT_NEXT_ITEM", "SELECT_PREV_ITEM"),
)
"""Buttons that exclude each other; each other button is a group by itself."""


@dataclass(frozen=True)
class ButtonChoices:
    """What an agent chooses from, and what is pressed then."""

    space: Discrete | MultiDiscrete
    tables: tuple[FloatArray, ...]
    """What each choice of an action presses, `[options, B]`; what they press together is the sum."""

    def pressed(self, actions: Array) -> list[list[float]]:
        """Values of all buttons for actions `[E]`, or `[E, choices]`, of E environments."""
        columns = actions.reshape(len(actions), -1).T
        rows = [table[column] for table, column in zip(self.tables, columns, strict=True)]
        pressed: list[list[float]] = np.sum(rows, axis=0).tolist()
        return pressed


def button_choices(buttons: Sequence[str], presses: Presses, deltas: Mapping[str, Sequence[float]]) -> ButtonChoices:
    """The choices of an agent that has these buttons.

    `single` is one choice: nothing, each button alone, and each value of a delta button alone, in the order of the
    buttons. `groups` is a choice for each group of buttons that exclude each other: none of them, or one.
    `combinations` is one choice of all that groups allow together: nothing first, and the last group changes fastest.

    Args:
        buttons: names of the available buttons, in their order.
        presses: which of these.
        deltas: values that each delta button can have, other than 0.

    Raises:
        UserError: a delta button has no values, something else has, or there are too many combinations.
    """
    _check_deltas(buttons, deltas)
    groups = [_options(group, deltas) for group in _groups(buttons)]
    tables = [_table(buttons, [(), *((option,) for option in group)]) for group in groups]
    if presses == "groups" and len(tables) > 1:
        return ButtonChoices(MultiDiscrete(tuple(len(table) for table in tables)), tuple(tables))
    if presses == "single":
        options = [(), *((option,) for option in _options(buttons, deltas))]
        return ButtonChoices(Discrete(len(options)), (_table(buttons, options),))
    combinations = math.prod(len(table) for table in tables)
    if combinations > MOST_COMBINATIONS:
        raise UserError(
            f"environment.actions: is combinations, which are {combinations:,} of these {len(buttons)} buttons; "
            f"possible are {MOST_COMBINATIONS}: write groups, or leave buttons out by config: "
            "{available_buttons: [...]}"
        )
    table = np.array([np.sum(rows, axis=0) for rows in itertools.product(*tables)], np.float32)
    return ButtonChoices(Discrete(combinations), (table,))


def _check_deltas(buttons: Sequence[str], deltas: Mapping[str, Sequence[float]]) -> None:
    for name, values in deltas.items():
        if name not in buttons or not is_delta(name):
            known = [button for button in buttons if is_delta(button)]
            raise UserError(
                f"environment.deltas: {name} is no delta button of this scenario{did_you_mean(name, known)}"
            )
        if not values or 0 in values or len({*values}) < len(values):
            raise UserError(
                f"environment.deltas.{name}: is {list(values)}; write different values other than 0, which is not to "
                "press it"
            )
    for name in buttons:
        if is_delta(name) and name not in deltas:
            raise UserError(
                f"environment.deltas: button {name} takes any number, so write the values to choose from, a tic each, "
                f"as in deltas: {{{name}: [-5, 5]}}, or leave it out (config: {{available_buttons: [...]}})"
            )


def is_delta(button: str) -> bool:
    """Whether a button takes a number (degrees, map units) instead of being pressed or not."""
    return button.endswith("_DELTA")


def _groups(buttons: Sequence[str]) -> Iterator[list[str]]:
    """Groups in the order of their first buttons."""
    seen: set[str] = set()
    for button in buttons:
        if button not in seen:
            names = next((group for group in GROUPS if button in group), (button,))
            seen.update(names)
            yield [name for name in buttons if name in names]


def _options(buttons: Sequence[str], deltas: Mapping[str, Sequence[float]]) -> list[tuple[str, float]]:
    return [(button, value) for button in buttons for value in deltas.get(button, (1.0,))]


def _table(buttons: Sequence[str], options: Sequence[Sequence[tuple[str, float]]]) -> FloatArray:
    table = np.zeros((len(options), len(buttons)), np.float32)
    for row, option in zip(table, options, strict=True):
        for button, value in option:
            row[buttons.index(button)] = value
    return table
