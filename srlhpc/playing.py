"""A run's policies with the weights of a checkpoint, about to play an exact number of episodes, and how these went."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.environment import Environment
from srlhpc.errors import UserError, counted
from srlhpc.import_path import load_module
from srlhpc.plan.exploration import even_exploration
from srlhpc.plan.plan import Plan, Seat
from srlhpc.plan.planner import make_plan
from srlhpc.plan.seeds import seed_of
from srlhpc.policies.policy import Policy
from srlhpc.ranks.actors import episode_summary
from srlhpc.ranks.global_generators import seed_generators
from srlhpc.ranks.inputs import read_plan
from srlhpc.ranks.policies import build_policy, load_parameters
from srlhpc.roles.acting.closing import close
from srlhpc.roles.acting.player import Player
from srlhpc.roles.acting.round import Round
from srlhpc.runs.checkpoints import checkpoint_folder
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine, duration_text
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import load_experiment
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.probe import check_packages, probe_spaces
from srlhpc.specs.probe_process import told

MOST_ENVIRONMENTS = 8
_SECONDS_BEFORE_PROGRESS = 1.0
_OF_RETURNS: dict[str, Callable[[Sequence[float]], Any]] = {"mean": np.mean, "std": np.std, "min": min, "max": max}


class Progress:
    """Shows where rounds stand, in a line; not at once, since short ones need no progress."""

    def __init__(self, line: ProgressLine) -> None:
        self._line, self._begun = line, time.monotonic()

    def show(self, played: Round, *before: str) -> None:
        """Shows where one round stands, behind other parts of the line, if it is time."""
        now = time.monotonic()
        if now > self._begun + _SECONDS_BEFORE_PROGRESS and self._line.is_due(now):
            ended = f"{len(played.episodes)} of {counted(played.wanted, 'episode')}"
            parts = [*before, ended, counted(played.steps, "step")]
            parts += [f"the longest under way {played.longest:,}", duration_text(now - self._begun)]
            self._line.show(" · ".join(parts), now)


class Stage:
    """A run's policies, and a round of episodes that they play; shows where it stands.

    Attributes:
        plan: of the run.
        file: the checkpoint.
        tree: what is in it.
        environment: in which they play.
        players: by policy.
        round: is done when all episodes are played or given up.
        most_steps: after which an episode is given up.
    """

    def __init__(
        self,
        plan: Plan,
        file: Path,
        tree: Mapping[str, Any],
        environment: Environment,
        players: Mapping[str, Player],
        played: Round,
        most_steps: int,
        line: ProgressLine,
    ) -> None:
        self.plan, self.file, self.tree = plan, file, tree
        self.environment, self.players, self.round, self.most_steps = environment, players, played, most_steps
        self._progress = Progress(line)

    def advance(self) -> None:
        """Plays one step in all environments."""
        self.round.advance()
        self._progress.show(self.round)


@contextmanager
def staged(
    paths: RunPaths,
    episodes: int,
    checkpoint: Path | None,
    max_episode_steps: int | None,
    seed: int,
    line: ProgressLine,
    *,
    render: bool = False,
    exploring: bool = False,
) -> Iterator[Stage]:
    """A round that is about to begin; its environment is closed afterwards.

    Args:
        paths: the run.
        episodes: exactly so many; each environment plays a fixed share of them.
        checkpoint: a checkpoint file; None for the newest whole one.
        max_episode_steps: after which an episode is given up; None for what the run's evaluators take.
        seed: changes the episodes.
        line: where progress is shown.
        render: whether the environment draws; there is only one then.
        exploring: whether the policies act as in training.

    Raises:
        UserError: no checkpoint, one that does not fit, ...
    """
    plan = plan_of(paths)
    check_packages(plan.spec.environment)
    file, tree = _checkpoint(paths, checkpoint)
    num_environments = 1 if render else min(episodes, MOST_ENVIRONMENTS)
    seed_generators(seed_of(plan.spec.seed, "eval generators", seed))
    environment = built_environment(plan.spec.environment, num_environments, seed, render=render)
    torch.set_num_threads(1)
    make = _exploring_player if exploring else _player
    most_steps = max_episode_steps or plan.spec.evaluators.max_episode_steps
    try:
        players = {seat.policy: make(plan, seat, num_environments, tree, file, paths) for seat in plan.whole_seats}
        begins = seed_of(plan.spec.seed, "eval", seed)
        played = Round(environment, list(players.values()), episodes, begins, most_steps)
        yield Stage(plan, file, tree, environment, players, played, most_steps, line)
    finally:
        close(environment, f"environment {plan.spec.environment.factory}")
        line.clear()


def plan_of(paths: RunPaths) -> Plan:
    """A run's plan, by the spaces that its last attempt found, else by those of its environment here."""
    attempt = paths.last_attempt()
    if attempt is not None and attempt.spaces.exists():
        return read_plan(paths, attempt, serial=False)
    return plan_here(load_experiment(paths.spec))


def plan_here(spec: ExperimentSpec) -> Plan:
    """The plan of a spec whose environment is looked at."""
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
    policy = loaded_policy(plan, seat.policy, tree, file, paths)
    exploration = plan.spec.policies[seat.policy].algorithm.explore_in_evaluation()
    return Player(policy, seat.kind, seat.agents, num_environments, exploration=exploration)


def _exploring_player(
    plan: Plan, seat: Seat, num_environments: int, tree: Mapping[str, Any], file: Path, paths: RunPaths
) -> Player:
    """One that draws its actions, and explores as the rule does after so many trained steps."""
    policy = loaded_policy(plan, seat.policy, tree, file, paths)
    explored = even_exploration(plan, seat.policy, num_environments * len(seat.agents))
    part = tree["policies"].get(seat.policy, {})
    exploration = explored(int(part.get("counters", {}).get("steps", 0))) if explored else {}
    return Player(policy, seat.kind, seat.agents, num_environments, exploration=exploration, draws=True)


def loaded_policy(plan: Plan, name: str, tree: Mapping[str, Any], file: Path, paths: RunPaths | None) -> Policy:
    """A policy with its parameters of a checkpoint.

    Args:
        plan: of the run.
        name: of the policy.
        tree: the checkpoint.
        file: where it was read from.
        paths: of the run, where the weights are of policies that the checkpoint lacks; None: it lacks none.

    Raises:
        UserError: the checkpoint lacks it, or has another network's.
    """
    part = tree["policies"].get(name)
    policy = build_policy(plan, name, paths if part is None else None)
    if part is not None:
        load_parameters(policy, part["parameters"], f"{file}: policy '{name}'")
    elif plan.trainers(name):
        raise UserError(f"{file}: has no policy '{name}' (it has {', '.join(tree['policies'])})")
    return policy


def built_environment(
    settings: EnvironmentSettings, num_environments: int, seed: int, *, render: bool = False
) -> Environment:
    """An environment to play in.

    Raises:
        UserError: it cannot be built.
    """
    module = load_module(settings.factory, "envs")
    try:
        built: Environment = module.build(settings, num_environments=num_environments, seed=seed, render=render)
    except UserError:
        raise
    except Exception as error:
        purpose = " so that it draws pictures (--video)" if render else ""
        raise UserError(f"environment '{settings.factory}' cannot be built{purpose}: {told(error)}") from error
    return built


def result_of(stage: Stage) -> dict[str, Any]:
    """How the episodes went that were played."""
    summary_of, played = episode_summary(stage.plan), stage.round
    summaries = [summary_of(episode) for episode in played.episodes]
    returns = [summary["return"] for summary in summaries if summary["return"] is not None]
    return {
        "checkpoint": stage.file.name,
        "updates": int(stage.tree["meta"]["updates"]),
        "episodes": len(summaries),
        "unfinished": played.unfinished,
        **{f"return_{name}": float(of(returns)) if returns else None for name, of in _OF_RETURNS.items()},
        "length_mean": float(np.mean([summary["steps"] for summary in summaries])) if summaries else None,
        "policies": _means(summary["policies"] for summary in summaries),
        "statistics": _means(summary["metrics"] for summary in summaries),
        "returns": returns,
        "max_episode_steps": stage.most_steps,
    }


def _means(values: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Mean of every name, over the episodes that have it."""
    gathered: dict[str, list[float]] = {}
    for episode in values:
        for name, value in episode.items():
            gathered.setdefault(name, []).append(value)
    return {name: float(np.mean(found)) for name, found in gathered.items()}
