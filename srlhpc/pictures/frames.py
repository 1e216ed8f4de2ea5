"""What environments draw, as pictures of one size: bytes `[height, width, 3]`.

Letters: Y, X height and width of a picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srlhpc.environment import Array
from srlhpc.errors import UserError

_CHANNELS = (1, 3, 4)
_REMEDY = "; draw bytes (uint8) [height, width, 3]"
HOW_TO_DRAW = (
    "let it draw bytes (uint8) [height, width, 3], of Gymnasium and PettingZoo with render_mode 'rgb_array' taken by "
    "__init__ and kept as self.render_mode; or leave --video out"
)
"""What to do about an environment that draws nothing."""


class Frames:
    """Turns one frame after the other into pictures of the first one's size.

    Args:
        say: is told once of each conversion.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: set[str] = set()
        self._size: tuple[int, int] | None = None

    def picture(self, drawn: Any) -> Array:
        """What was drawn, as a picture.

        Grey, transparent and channels-first frames, floats from 0 to 1, booleans and integers from 0 to 255 are
        converted; of a list of frames the last is taken; frames of another size than the first are scaled to fit.

        Raises:
            UserError: nothing was drawn, or what it means is not clear.
        """
        if isinstance(drawn, list | tuple) and drawn:
            drawn = drawn[-1]
        if drawn is None or (isinstance(drawn, list | tuple) and not drawn):
            raise UserError(f"--video: this environment draws no pictures: its `render` gives None; {HOW_TO_DRAW}")
        frame = drawn if isinstance(drawn, np.ndarray) else np.asarray(drawn)
        found = f"{frame.dtype} {list(frame.shape)}"
        picture = _in_colours(_bytes(_channels_last(frame, found), found))
        if frame.dtype != np.uint8 or frame.shape != picture.shape:
            self._tell_once(f"--video: frames are {found}; shown as bytes {list(picture.shape)}", "kind")
        return self._fitted(picture)

    def _fitted(self, picture: Array) -> Array:
        size = (picture.shape[0], picture.shape[1])
        if self._size is None:
            self._size = size
        if size == self._size:
            return picture
        first, this = (f"{width} x {height}" for height, width in (self._size, size))
        self._tell_once(f"--video: frames vary in size ({first} first, now {this}); all are scaled to {first}", "size")
        return _scaled(picture, self._size)

    def _tell_once(self, text: str, about: str) -> None:
        if about not in self._said:
            self._said.add(about)
            self._say(text)


def _channels_last(frame: Array, found: str) -> Array:
    """`[Y, X, 1, 3 or 4]`."""
    if frame.ndim == 2:
        frame = frame[:, :, None]
    if frame.ndim == 3 and frame.shape[2] not in _CHANNELS and frame.shape[0] in _CHANNELS:
        frame = frame.transpose(1, 2, 0)
    if frame.ndim != 3 or frame.shape[2] not in _CHANNELS or 0 in frame.shape:
        raise UserError(f"--video: `render` gives {found}, which is no picture{_REMEDY}")
    return frame


def _bytes(frame: Array, found: str) -> Array:
    if frame.dtype == np.uint8:
        return frame
    if frame.dtype.kind not in "biuf":
        raise UserError(f"--video: `render` gives {found}, which are no numbers{_REMEDY}")
    least, most = frame.min(), frame.max()
    top = 1 if frame.dtype.kind in "bf" else 255
    # Comparisons with what is not a number are false.
    if not (0 <= least <= most <= top):
        raise UserError(
            f"--video: `render` gives {found} with values from {least:g} to {most:g}; expected are bytes (uint8), "
            "other integers from 0 to 255, or floats from 0 to 1"
        )
    return np.rint(frame * 255.0).astype(np.uint8) if top == 1 else frame.astype(np.uint8)


def _in_colours(frame: Array) -> Array:
    """Three channels; what transparency hides is not hidden."""
    return np.repeat(frame, 3, axis=2) if frame.shape[2] == 1 else frame[:, :, :3]


def _scaled(picture: Array, size: tuple[int, int]) -> Array:
    """The picture as large as fits into the size, in the middle of black; its shape is kept."""
    (height, width), (tall, wide) = picture.shape[:2], size
    factor = min(tall / height, wide / width)
    inner = max(1, round(height * factor)), max(1, round(width * factor))
    rows, columns = (np.arange(new) * old // new for new, old in zip(inner, (height, width), strict=True))
    top, left = (tall - inner[0]) // 2, (wide - inner[1]) // 2
    scaled = np.zeros((tall, wide, 3), np.uint8)
    scaled[top : top + inner[0], left : left + inner[1]] = picture[np.ix_(rows, columns)]
    return scaled
