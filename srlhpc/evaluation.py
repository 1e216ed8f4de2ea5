"""`srlhpc eval`: an exact number of episodes with deterministic actions, frozen weights and frozen statistics."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from srlhpc.environment import Array, Environment
from srlhpc.errors import UserError
from srlhpc.pictures.frames import HOW_TO_DRAW, Frames
from srlhpc.pictures.video import check_film, film
from srlhpc.playing import Stage, result_of, staged
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine
from srlhpc.specs.probe_process import told


def evaluate(
    paths: RunPaths,
    *,
    episodes: int,
    checkpoint: Path | None = None,
    video: Path | None = None,
    max_episode_steps: int | None = None,
    line: ProgressLine | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Plays `episodes` episodes with a run's policies and says how they went.

    Args:
        paths: the run.
        episodes: exactly so many; each environment plays a fixed share of them.
        checkpoint: a checkpoint file; None for the newest whole one.
        video: where to write a film or a contact sheet (one environment is played then); None for neither.
        max_episode_steps: an episode that has not ended after so many steps is given up, with those that its
            environment still had to play; None for what the run's evaluators take.
        line: where progress is shown.
        seed: changes the episodes.

    Raises:
        UserError: no checkpoint, one that does not fit, an environment that draws no pictures, ...
    """
    if video is not None:
        check_film(video)
    line = line or ProgressLine(io.StringIO())
    with staged(paths, episodes, checkpoint, max_episode_steps, seed, line, render=video is not None) as stage:
        _play(stage, video, line)
    return result_of(stage)


def _play(stage: Stage, video: Path | None, line: ProgressLine) -> None:
    environment, played = stage.environment, stage.round
    if video is None:
        while not played.is_done:
            stage.advance()
        return
    frames = Frames(line.say)
    with film(video, environment.render_fps) as shown:
        shown.add(frames.picture(_first_drawn(environment)))
        while not played.is_done:
            is_shown = len(played.episodes) < shown.most_episodes
            stage.advance()
            if is_shown:
                shown.add(frames.picture(environment.render()))


def _first_drawn(environment: Environment) -> Array | None:
    """What an environment draws at the beginning, where it turns out whether it can.

    Raises:
        UserError: it cannot.
    """
    try:
        return environment.render()
    except UserError:
        raise
    except NotImplementedError:
        raise UserError(f"--video: this environment draws no pictures: it has no `render`; {HOW_TO_DRAW}") from None
    except Exception as error:
        raise UserError(
            f"--video: this environment drew no picture, its `render` failed: {told(error)}; put it right there (on a "
            "machine without a screen, MuJoCo needs MUJOCO_GL=egl or osmesa in the shell's environment)"
        ) from error
