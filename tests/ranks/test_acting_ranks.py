"""A rank that only acts loads and builds nothing of learning: thousands of inline actors start."""

from __future__ import annotations

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
ACTING = """
from srlhpc.plan.planner import make_plan
from srlhpc.ranks import actors, policies, rank, serving
from srlhpc.specs.load import load_experiment
from srlhpc.specs.probe import probe_spaces
spec = load_experiment("jobs/catch.yaml")
plan = make_plan(spec, probe_spaces(spec.environment))
policies.build_policy(plan, "default")
"""


def test_rank_that_only_acts_loads_no_rule_optimizer_process_group_or_trainer() -> None:
    assert loaded_by(ACTING, LEARNING) == ""


def test_trainer_loads_all_of_them() -> None:
    trains = "from srlhpc.ranks import trainers\nimport srlhpc.algorithms.ppo.update"
    assert loaded_by(trains, LEARNING).split() == LEARNING
