"""Films of episodes as video files, and which file ending means what."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from srlhpc.environment import Array
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from srlhpc.pictures.contact_sheet import ContactSheet
from srlhpc.pictures.film import Film
from srlhpc.pictures.gif import GifFile

FRAMES_PER_SECOND = 30
FORMATS = {
    ".mp4": {"imageio": "video", "imageio_ffmpeg": "video"},
    ".gif": {"PIL": "video"},
    ".png": {"PIL": "video"},
}
"""Endings, and the packages that they need."""


def check_film(path: Path) -> None:
    """Refuses a file that `film` cannot write.

    Raises:
        UserError: another ending, or a package or the folder is missing.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UserError(f"--video {path}: the file must end in .mp4 or .gif (a video) or .png (a contact sheet)")
    if missing := [package for package, _ in missing_packages(FORMATS[suffix])]:
        raise UserError(f"--video {path} needs {' and '.join(missing)}: pip install 'srlhpc[video]'")
    if not path.parent.is_dir():
        raise UserError(f"--video {path}: there is no folder {path.parent}")


def film(path: Path, frames_per_second: float | None = None) -> Film:
    """What writes the file.

    Args:
        path: the file: a video (`.mp4`, `.gif`) of all episodes, or a contact sheet (`.png`) of the first.
        frames_per_second: speed of a video; None for `FRAMES_PER_SECOND`.

    Raises:
        UserError: as `check_film`.
    """
    check_film(path)
    suffix = path.suffix.lower()
    if suffix == ".png":
        return ContactSheet(path)
    return (GifFile if suffix == ".gif" else VideoFile)(path, frames_per_second or FRAMES_PER_SECOND)


class VideoFile(Film):
    """Writes all frames to an `.mp4` file.

    Args:
        path: the file.
        frames_per_second: speed of the film.
    """

    def __init__(self, path: Path, frames_per_second: float) -> None:
        self._path, self._frames_per_second = path, frames_per_second
        self._writer: Any = None

    def __enter__(self) -> Self:
        import imageio.v2 as imageio

        self._writer = imageio.get_writer(self._path, fps=self._frames_per_second, macro_block_size=2)
        return self

    def add(self, frame: Array) -> None:
        height, width, _ = frame.shape
        # The codec wants even sizes.
        even = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        self._writer.append_data(even)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._writer.close()
        if error is not None:
            self._path.unlink(missing_ok=True)
