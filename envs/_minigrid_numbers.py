"""What MiniGrid shows as numbers: codes of cells as planes, the mission as the words that are in it.

Letters: Y, X height and width of the view in cells; the agent is in the middle of the last row and looks up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from envs._gymnasium_spaces import ObservationKey, ObservationKeys, observation_keys
from envs._returned_values import SimulatorError
from srlhpc.environment import Array, ArraySpec
from srlhpc.errors import UserError

OBJECTS, COLOURS, STATES = 11, 6, 4
"""How many codes of each a cell can have. minigrid.core.constants has those of objects and colours; a state is one of a
door (open, closed, locked), or where an agent looks."""
PLANES = OBJECTS + COLOURS + STATES

_CODE = np.repeat([0, 1, 2], [OBJECTS, COLOURS, STATES])
_VALUE = np.concatenate([np.arange(OBJECTS), np.arange(COLOURS), np.arange(STATES)]).astype(np.uint8)[:, None, None]
_LARGEST = np.array([OBJECTS, COLOURS, STATES], np.uint8)[:, None, None]

WORDS = (
    # fmt: off
    "red",
    "green",
    "blue",
    "yellow",
    "purple",
    "grey",
    "unseen",
    "empty",
    "wall",
    "floor",
    "box",
    "key",
    "ball",
    "door",
    "goal",
    "agent",
    "lava",
    "object",
    "pick",
    "avoid",
    "get",
    "find",
    "put",
    "use",
    "open",
    "go",
    "fetch",
    "reach",
    "unlock",
    "traverse",
    "up",
    "the",
    "a",
    "at",
    "square",
    "and",
    "then",
    "to",
    "of",
    "room",
    "rooms",
    "near",
    "opening",
    "must",
    "you",
    "matching",
    "end",
    "hallway",
    "from",
    "maze",
    "next",
    "after",
    "in",
    "front",
    "behind",
    "on",
    "your",
    "left",
    "right",
    # fmt: on
)
"""All words of the missions of MiniGrid and BabyAI, in the order of their numbers; commas are left out."""
_PLACES = {word: place for place, word in enumerate(WORDS)}


def numbers_of(space: Any, where: str, *, mission: bool) -> ObservationKeys:
    """How observations of MiniGrid are written: planes of the image, the direction as one-hot, the mission's words.

    Raises:
        UserError: the space is not that of MiniGrid: an image of three codes a cell, a direction, a mission.
    """
    parts = getattr(space, "spaces", {})
    image: tuple[int, ...] = getattr(parts.get("image"), "shape", ())
    if not {"image", "direction", "mission"} <= {*parts} or len(image) != 3 or image[2] != 3:
        raise UserError(
            f"{where}: its observation space, {space}, is not that of MiniGrid ({{image: codes [X, Y, 3], direction, "
            "mission}}); take factory: gymnasium for wrappers that show something else"
        )
    direction = observation_keys(parts["direction"], where).keys["obs"]
    keys = {
        "image": _part("image", ArraySpec((PLANES, image[1], image[0]), "uint8"), planes),
        "direction": _part("direction", direction.spec, direction.encode),
    }
    if mission:
        keys["mission"] = _part("mission", ArraySpec((len(WORDS),), "float32"), words)
    return ObservationKeys(keys)


def _part(name: str, spec: ArraySpec, encode: Callable[[Any], Any]) -> ObservationKey:
    return ObservationKey(spec, encode, path=(name,))


def planes(image: Any) -> Array:
    """Codes `[X, Y, 3]` as uint8 `[21, Y, X]`, 255 where a cell has the object, colour or state of a plane.

    Raises:
        SimulatorError: a code is none of MiniGrid's.
    """
    codes = np.asarray(image).T
    if (codes >= _LARGEST).any():
        raise SimulatorError(
            f"the image has the code {int(codes.max())}, which is none of MiniGrid's objects, colours and states; take "
            "factory: gymnasium for images of pixels"
        )
    shown: Array = (codes[_CODE] == _VALUE) * np.uint8(255)
    return shown


def words(mission: str) -> Array:
    """How often each word is in a mission, float32 `[len(WORDS)]`; their order is lost.

    Raises:
        SimulatorError: a word is none of MiniGrid's or BabyAI's.
    """
    counts = np.zeros(len(WORDS), np.float32)
    for word in mission.lower().replace(",", " ").split():
        if word not in _PLACES:
            raise SimulatorError(
                f"the mission '{mission}' has the word '{word}', which is none of MiniGrid's and BabyAI's; leave the "
                "mission out (mission: false)"
            )
        counts[_PLACES[word]] += 1
    return counts
