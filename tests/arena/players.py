"""Runs of small competitive games with checkpoints whose policies play as a test says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srlhpc.data.checkpoint import write_checkpoint
from srlhpc.data.checkpoint_names import name_of
from srlhpc.environment import Array
from srlhpc.plan.plan import Plan
from srlhpc.ranks.policies import build_policy
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.load import dump_experiment
from tests.launch.making_runs import make_attempt, make_run, settings

ROCK, PAPER, SCISSORS = 0, 1, 2
RPS: dict[str, Any] = {"factory": "rock_paper_scissors"}
TWO_POLICIES: dict[str, Any] = {
    "agents": [{"match": "agent_0", "policy": "left"}, {"match": "agent_1", "policy": "right"}]
}


def job_of(environment: Mapping[str, Any] = RPS, **changes: Any) -> dict[str, Any]:
    """A job with a policy for each that `changes["agents"]` names, all alike."""
    # Blocks of one to four agents of four environments each fill that.
    job = settings(environment, stop={"updates": 1}, batch={"fragments": 48, "fragment_steps": 8})
    names = {entry["policy"] for entry in changes.get("agents", ())} or {"default"}
    return job | {"policies": dict.fromkeys(sorted(names), job["policies"]["default"])} | changes


def make_players(root: Path, name: str, job: Mapping[str, Any], *players: Sequence[float]) -> RunPaths:
    """A run with a checkpoint for each player: after 1 update, 2, ..."""
    paths = make_run(root, job, name)
    _, plan = make_attempt(paths, job)
    for updates, chances in enumerate(players, 1):
        write_player(paths, plan, updates, chances)
    return paths


def write_player(paths: RunPaths, plan: Plan, updates: int, chances: Sequence[float]) -> None:
    """A checkpoint all of whose policies choose actions with these chances, whatever they see."""
    parameters = {seat.policy: initial_parameters(plan, seat.policy) for seat in plan.seats}
    for arrays in parameters.values():
        arrays["policy_head.linear.weight"][:] = 0.0
        arrays["policy_head.linear.bias"][:] = [math.log(max(chance, 1e-9)) for chance in chances]
    write_parameters(paths, plan, updates, parameters)


def initial_parameters(plan: Plan, policy: str) -> dict[str, Array]:
    return {name: tensor.numpy().copy() for name, tensor in build_policy(plan, policy).state_dict().items()}


def write_parameters(paths: RunPaths, plan: Plan, updates: int, parameters: Mapping[str, Mapping[str, Array]]) -> None:
    """A checkpoint with these parameters of each policy."""
    parts = {policy: {"parameters": arrays} for policy, arrays in parameters.items()}
    meta = {"updates": updates, "spec": dump_experiment(plan.spec)}
    write_checkpoint(paths.checkpoints / name_of(updates), {"meta": meta, "policies": parts})


def always(action: int, choices: int = 3) -> list[float]:
    return [float(action == choice) for choice in range(choices)]
