"""A rank that only acts loads and builds nothing of learning: thousands of inline actors start."""

from __future__ import annotations

from importlib.util import find_spec

from tests.test_imports import loaded_by

LEARNING = [
    "srlhpc.algorithms.algorithm",
    "srlhpc.algorithms.flat_adam",
    "srlhpc.algorithms.ppo.update",
    "srlhpc.comm.process_group",
    "srlhpc.ranks.trainers",
    "srlhpc.roles.training.trainer",
    "srlhpc.roles.training.staging",
]
BUILD = """
from pathlib import Path
import srlhpc.ranks.rank
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.ranks import serving
from srlhpc.ranks.building import build_roles
from srlhpc.ranks.context import RankContext
from srlhpc.runs.paths import RunPaths
from tests.plan.test_planner import actors, planned
serving.share_on_node = lambda *_, **__: None
paths = RunPaths(Path("nowhere"))
CASES = (("inline", "actor-0", 2), ("server", "policy_server-0", 1), ("server", "evaluator-0", 1))
for inference, label, roles in CASES:
    plan = planned(actors=actors(inference), evaluators={"ranks": 1})
    here = next(rank for rank in plan.ranks if rank.label == label)
    context = RankContext(plan, here, paths, paths.attempt(1), InProcessTransport(), world=object())
    assert len(list(build_roles(context))) == roles
"""


def test_ranks_that_only_act_are_built_without_rule_optimizer_process_group_or_trainer() -> None:
    assert loaded_by(BUILD, LEARNING) == ""


def test_modules_of_learning_have_these_names() -> None:
    assert [name for name in LEARNING if find_spec(name) is None] == []
