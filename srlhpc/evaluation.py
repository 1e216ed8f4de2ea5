"""`srlhpc eval`: an exact number of episodes with deterministic actions, frozen weights and frozen statistics."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.environment import Array, Environment
from srlhpc.errors import UserError, counted
from srlhpc.import_path import load_module
from srlhpc.pictures.frames import HOW_TO_DRAW, Frames
from srlhpc.pictures.video import check_film, film
from srlhpc.plan.plan import Plan, Seat
from srlhpc.plan.planner import make_plan
from srlhpc.plan.seeds import seed_of
from srlhpc.policies.policy import Policy
from srlhpc.ranks.actors import episode_summary
from srlhpc.ranks.global_generators import seed_generators
from srlhpc.ranks.inputs import read_plan
from srlhpc.ranks.policies import build_policy, load_parameters
from srlhpc.roles.acting.closing import close
from srlhpc.roles.acting.evaluator import Player, Round
from srlhpc.runs.checkpoints import checkpoint_folder
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine, duration_text
from srlhpc.specs.load import load_experiment
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.probe import check_packages, probe_spaces
from srlhpc.specs.probe_process import told

MOST_ENVIRONMENTS = 8
_SECONDS_BEFORE_PROGRESS = 1.0
_OF_RETURNS: dict[str, Callable[[Sequence[float]], Any]] = {"mean": np.mean, "std": np.std, "min": min, "max": max}


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
    plan = _plan(paths)
    check_packages(plan.spec.environment)
    file, tree = _checkpoint(paths, checkpoint)
    num_environments = 1 if video else min(episodes, MOST_ENVIRONMENTS)
    seed_generators(seed_of(plan.spec.seed, "eval generators", seed))
    environment = _built(plan.spec.environment, num_environments, seed, render=video is not None)
    torch.set_num_threads(1)
    players = [_player(plan, seat, num_environments, tree, file, paths) for seat in plan.seats]
    most_steps = max_episode_steps or plan.spec.evaluators.max_episode_steps
    line = line or ProgressLine(io.StringIO())
    try:
        played = Round(environment, players, episodes, seed_of(plan.spec.seed, "eval", seed), most_steps)
        _play(_Watched(played, episodes, line), environment, video, line)
    finally:
        close(environment, f"environment {plan.spec.environment.factory}")
        line.clear()
    return {**_result(plan, played, file, tree), "max_episode_steps": most_steps}


def _plan(paths: RunPaths) -> Plan:
    attempt = paths.last_attempt()
    if attempt is not None and attempt.spaces.exists():
        return read_plan(paths, attempt, serial=False)
    spec = load_experiment(paths.spec)
    return make_plan(spec, probe_spaces(spec.environment))


def _checkpoint(paths: RunPaths, checkpoint: Path | None) -> tuple[Path, Mapping[str, Any]]:
    if checkpoint is not None:
        return checkpoint, read_checkpoint(checkpoint)
    newest = checkpoint_folder(paths).newest_valid()
    if newest is None:
        raise UserError(f"run {paths.name} has no checkpoint yet; one is written after its first update")
    return newest.path, newest.tree


def _player(
    plan: Plan, seat: Seat, num_environments: int, tree: Mapping[str, Any], file: Path, paths: RunPaths
) -> Player:
    policy = _policy(plan, seat.policy, tree, file, paths)
    exploration = plan.spec.policies[seat.policy].algorithm.explore_in_evaluation()
    return Player(policy, seat.kind, seat.agents, num_environments, exploration=exploration)


def _policy(plan: Plan, name: str, tree: Mapping[str, Any], file: Path, paths: RunPaths) -> Policy:
    policy = build_policy(plan, name, paths)
    part = tree["policies"].get(name)
    if part is not None:
        load_parameters(policy, part["parameters"], f"{file}: policy '{name}'")
    elif plan.trainers(name):
        raise UserError(f"{file}: has no policy '{name}' (it has {', '.join(tree['policies'])})")
    return policy


def _built(settings: EnvironmentSettings, num_environments: int, seed: int, *, render: bool) -> Environment:
    module = load_module(settings.factory, "envs")
    try:
        built: Environment = module.build(settings, num_environments=num_environments, seed=seed, render=render)
    except UserError:
        raise
    except Exception as error:
        purpose = " so that it draws pictures (--video)" if render else ""
        raise UserError(f"environment '{settings.factory}' cannot be built{purpose}: {told(error)}") from error
    return built


class _Watched:
    """A round that shows where it stands."""

    def __init__(self, played: Round, wanted: int, line: ProgressLine) -> None:
        self.round, self._wanted, self._line = played, wanted, line
        self._begun = time.monotonic()

    def advance(self) -> None:
        self.round.advance()
        now = time.monotonic()
        # Short ones need no progress.
        if now > self._begun + _SECONDS_BEFORE_PROGRESS and self._line.is_due(now):
            ended = f"{len(self.round.episodes)} of {counted(self._wanted, 'episode')}"
            parts = [ended, counted(self.round.steps, "step")]
            parts += [f"the longest under way {self.round.longest:,}", duration_text(now - self._begun)]
            self._line.show(" · ".join(parts), now)


def _play(watched: _Watched, environment: Environment, video: Path | None, line: ProgressLine) -> None:
    played = watched.round
    if video is None:
        while not played.is_done:
            watched.advance()
        return
    frames = Frames(line.say)
    with film(video, environment.render_fps) as shown:
        shown.add(frames.picture(_first_drawn(environment)))
        while not played.is_done:
            is_shown = len(played.episodes) < shown.most_episodes
            watched.advance()
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


def _result(plan: Plan, played: Round, file: Path, tree: Mapping[str, Any]) -> dict[str, Any]:
    summary_of = episode_summary(plan)
    summaries = [summary_of(episode) for episode in played.episodes]
    returns = [summary["return"] for summary in summaries if summary["return"] is not None]
    return {
        "checkpoint": file.name,
        "updates": int(tree["meta"]["updates"]),
        "episodes": len(summaries),
        "unfinished": played.unfinished,
        **{f"return_{name}": float(of(returns)) if returns else None for name, of in _OF_RETURNS.items()},
        "length_mean": float(np.mean([summary["steps"] for summary in summaries])) if summaries else None,
        "policies": _means(summary["policies"] for summary in summaries),
        "statistics": _means(summary["metrics"] for summary in summaries),
        "returns": returns,
    }


def _means(values: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Mean of every name, over the episodes that have it."""
    gathered: dict[str, list[float]] = {}
    for episode in values:
        for name, value in episode.items():
            gathered.setdefault(name, []).append(value)
    return {name: float(np.mean(found)) for name, found in gathered.items()}
