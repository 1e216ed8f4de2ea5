"""Where MuJoCo's warnings go."""

from __future__ import annotations

import functools
import logging

logger = logging.getLogger(__name__)


def log_warnings() -> None:
    """Logs each of MuJoCo's warnings once; by default it writes MUJOCO_LOG.TXT into the working folder."""
    import mujoco

    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_log_once)


@functools.cache
def _log_once(message: str) -> None:
    logger.warning("MuJoCo: %s", message)
