"""One layout of Overcooked's package: its rules as they are there, and what its cooks see, written faster.

Letters: C layers, H rows, W columns of the layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from envs._bare_modules import load_bare, package_folder
from envs._near_names import near_names
from srlhpc.environment import Array
from srlhpc.errors import UserError

COOKS = 2
ACTIONS = 6
"""North, south, east, west, stay, interact."""
LAYERS = (
    *("own_place", "others_place"),
    *(f"{whose}_faces_{where}" for whose in ("own", "other") for where in ("north", "south", "east", "west")),
    *("pots", "counters", "onion_dispensers", "tomato_dispensers", "dish_dispensers", "serving"),
    *("onions_in_pot", "tomatoes_in_pot", "onions_in_soup", "tomatoes_in_soup", "cook_time_remaining", "soup_done"),
    *("dishes", "onions", "tomatoes", "urgency"),
)
"""C layers in the order of the package's `lossless_state_encoding`."""
URGENT_STEPS = 40
"""`urgency` is everywhere in fewer steps than these before the end."""

_PLACE = {name: place for place, name in enumerate(LAYERS)}
_TERRAIN = {
    "P": "pots",
    "X": "counters",
    "O": "onion_dispensers",
    "T": "tomato_dispensers",
    "D": "dish_dispensers",
    "S": "serving",
}
_ITEMS = {"dish": "dishes", "onion": "onions", "tomato": "tomatoes"}
_IN_POT = ("onions_in_pot", "tomatoes_in_pot")
_IN_SOUP = ("onions_in_soup", "tomatoes_in_soup")
_MOST = 255


def load_kitchen(layout: str, *, old_dynamics: bool) -> Kitchen:
    """A layout of the package by its name.

    Raises:
        UserError: there is no such layout, it is not one for two, or its soups do not fit the old dynamics.
    """
    known = sorted(file.stem for file in (package_folder("overcooked") / "data" / "layouts").glob("*.layout"))
    if layout not in known:
        near = near_names(layout, known)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}"
        raise UserError(f"environment.layout: the package overcooked has no '{layout}'; {hint}")
    # The whole package would load OpenCV, pygame and marlenv, which only draw windows, into every actor. And the rules
    # keep cooking times and values in a class, `Recipe`, so layouts in one process would spoil each other's.
    rules = load_bare("overcooked.mdp.overcooked_mdp")
    # The package reads a layout's own start before it sets recipes up, and refuses what it then reads.
    rules.Recipe.configure({})
    overwritten = {"old_dynamics": True} if old_dynamics else {}
    try:
        world = rules.OvercookedGridworld.from_layout_name(layout, **overwritten)
    except AssertionError as error:
        raise UserError(f"environment.old_dynamics: '{layout}': {error}; leave old_dynamics out") from None
    if world.num_players != COOKS:
        raise UserError(f"environment.layout: '{layout}' is for {world.num_players}, not for {COOKS}; choose another")
    return Kitchen(rules, world)


class Kitchen:
    """The rules of one layout. It holds no state: states are the package's own, and a step makes a new one.

    Args:
        rules: the package's module `mdp.overcooked_mdp`.
        world: its `OvercookedGridworld` of the layout.

    Attributes:
        world: the same.
        scale: uint8 `[C]`: what the package's numbers are multiplied by, so that bytes are used up: 255 for what is
            there or not, 85 for a number of three, and what the layout's longest cooking leaves for its steps.
    """

    def __init__(self, rules: Any, world: Any) -> None:
        self._rules, self.world = rules, world
        self._actions = rules.Action.ALL_ACTIONS
        self._facing = rules.Direction.DIRECTION_TO_INDEX
        most_of_one = rules.Recipe.MAX_NUM_INGREDIENTS
        longest = max(recipe.time for recipe in rules.Recipe.ALL_RECIPES())
        self.scale: Array = np.full(len(LAYERS), _MOST, np.uint8)
        self.scale[[_PLACE[name] for name in (*_IN_POT, *_IN_SOUP)]] = _MOST // most_of_one
        self.scale[_PLACE["cook_time_remaining"]] = _MOST // longest
        self._map: Array = np.zeros(self.shape, np.uint8)
        for tile, name in _TERRAIN.items():
            for x, y in world.terrain_pos_dict[tile]:
                self._map[_PLACE[name], y, x] = _MOST
        self._pots = frozenset(world.terrain_pos_dict["P"])

    @property
    def shape(self) -> tuple[int, int, int]:
        """C, H, W."""
        return len(LAYERS), self.world.height, self.world.width

    def start(self) -> Any:
        """The state that episodes begin with."""
        return self.world.get_standard_start_state()

    def step(self, state: Any, chosen: Sequence[int]) -> tuple[Any, Sequence[float], Sequence[float]]:
        """The next state, and what each cook brought: by soups that were served, and by the way to them (shaped)."""
        after, said = self.world.get_state_transition(state, [self._actions[action] for action in chosen])
        return after, said["sparse_reward_by_agent"], said["shaped_reward_by_agent"]

    def show(self, state: Any, seen: Array, *, steps_left: int) -> None:
        """Writes what both cooks see, uint8 `[2, C, H, W]`."""
        seen[:] = self._map
        for place, player in enumerate(state.players):
            x, y = player.position
            facing = self._facing[player.orientation]
            for whose, view in ((0, seen[place]), (1, seen[1 - place])):
                view[whose, y, x] = view[COOKS + 4 * whose + facing, y, x] = _MOST
        for thing in _things(state):
            x, y = thing.position
            for name, number in self._layers_of(thing):
                seen[:, _PLACE[name], y, x] = number * int(self.scale[_PLACE[name]])
        if steps_left < URGENT_STEPS:
            seen[:, _PLACE["urgency"]] = _MOST

    def _layers_of(self, thing: Any) -> Iterator[tuple[str, int]]:
        if thing.name != "soup":
            yield _ITEMS[thing.name], 1
            return
        cooks = thing.position in self._pots
        counted = _IN_POT if cooks and thing.is_idle else _IN_SOUP
        yield from zip(counted, map(thing.ingredients.count, ("onion", "tomato")), strict=True)
        if cooks and not thing.is_idle:
            yield "cook_time_remaining", thing.cook_time_remaining
        if not cooks or thing.is_ready:
            yield "soup_done", 1

    def to_text(self, state: Any) -> str:
        """The state as JSON."""
        return json.dumps(state.to_dict())

    def from_text(self, text: str) -> Any:
        return self._rules.OvercookedState.from_dict(json.loads(text))


def _things(state: Any) -> Iterator[Any]:
    """What lies in pots and on counters, then what cooks hold."""
    yield from state.objects.values()
    for player in state.players:
        if player.held_object is not None:
            yield player.held_object
