"""Films of episodes: frames in, a file out."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from srlhpc.environment import Array
from srlhpc.objects import UserError, missing_packages

FRAMES_PER_SECOND = 30
FORMATS = (".mp4", ".gif")


class VideoFile:
    """Writes frames to an `.mp4` or `.gif` file; use it in a `with` statement.

    Args:
        path: the file.
        frames_per_second: speed of the film; None for `FRAMES_PER_SECOND`.

    Raises:
        UserError: another ending, or a package is missing.
    """

    def __init__(self, path: Path, frames_per_second: float | None = None) -> None:
        if path.suffix.lower() not in FORMATS:
            raise UserError(f"--video {path}: the file must end in {' or '.join(FORMATS)}")
        if missing_packages({"imageio": "video", "imageio_ffmpeg": "video"}):
            raise UserError("--video needs imageio and imageio-ffmpeg: pip install 'srlhpc[video]'")
        if not path.parent.is_dir():
            raise UserError(f"--video {path}: there is no folder {path.parent}")
        self._path, self._frames_per_second = path, frames_per_second or FRAMES_PER_SECOND
        self._writer: Any = None

    def __enter__(self) -> Self:
        import imageio.v2 as imageio

        options: dict[str, Any] = {"duration": 1000 / self._frames_per_second, "loop": 0}
        if self._path.suffix.lower() == ".mp4":
            options = {"fps": self._frames_per_second, "macro_block_size": 2}
        self._writer = imageio.get_writer(self._path, **options)
        return self

    def add(self, frame: Array | None) -> None:
        """Adds a frame, uint8 `[height, width, 3]`.

        Raises:
            UserError: the environment draws no pictures.
        """
        if frame is None:
            raise UserError("--video: this environment draws no pictures (its `render` gives None)")
        self._writer.append_data(frame)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._writer.close()
        if error is not None:
            self._path.unlink(missing_ok=True)
