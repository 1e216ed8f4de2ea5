"""How columns explore follows from the plan, the rule and the trained steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from srlhpc.environment import FloatArray
from srlhpc.errors import UserError
from srlhpc.plan.exploration import acting_exploration, check_exploration, even_exploration
from srlhpc.plan.plan import Plan
from tests.plan.test_planner import TAG, actors, planned, two_policies
from tests.plan.test_replay import REACH
from tests.rules.double_q import Settings

LADDER = {"kind": "tests.rules.double_q", "base": 0.5, "exponent": 1.0}
VALUES = {"network": {"kind": "tests.rules.action_values"}, "algorithm": LADDER}


def explored(plan: Plan, groups: list[int], policy: str = "default", steps: int = 0) -> list[float]:
    explore = acting_exploration(plan, policy, groups)
    assert explore is not None
    rows: list[float] = explore(steps)["epsilon"].tolist()
    return rows


def test_columns_are_numbered_over_all_groups_whoever_serves_them() -> None:
    # 2 actors x 2 groups x 4 environments: 16 columns.
    plan = planned(**VALUES, actors=actors())
    ladder = explored(plan, [0, 1, 2, 3])
    assert ladder == [pytest.approx(0.5 ** (1 + place / 15)) for place in range(16)]
    assert explored(plan, [3, 1]) == ladder[12:] + ladder[4:8]


@pytest.mark.parametrize(("rows", "places"), [(1, [0]), (4, [0, 4, 8, 12]), (16, range(16)), (32, np.arange(32) // 2)])
def test_few_columns_are_spread_evenly_over_those_of_the_run(rows: int, places: list[int]) -> None:
    plan = planned(**VALUES, actors=actors())
    explore = even_exploration(plan, "default", rows)
    assert explore is not None
    assert explore(0)["epsilon"].tolist() == [explored(plan, [0, 1, 2, 3])[place] for place in places]


def test_agents_of_a_policy_are_columns_of_their_own() -> None:
    job = two_policies(actors=actors(ranks=1, ring=1))
    job["policies"] = {name: policy | VALUES for name, policy in job["policies"].items()}
    plan = planned(TAG, **job)
    assert len(explored(plan, [0], "runners")) == 2 * len(explored(plan, [0], "chasers")) == 8


def test_one_column_has_the_base_of_the_ladder() -> None:
    one = {"ranks": 1, "ring": 1, "environments": 1}
    assert explored(planned(**VALUES, actors=one), [0]) == [0.5]


def test_schedules_follow_the_trained_steps() -> None:
    rule = LADDER | {"scale": {"start": 1.0, "end": 0.0, "steps": 100}}
    plan = planned(**VALUES | {"algorithm": rule}, actors=actors())
    assert [explored(plan, [0], steps=steps)[0] for steps in (0, 50, 100)] == [0.5, 0.25, 0.0]


def test_policy_that_nobody_trains_acts_as_in_evaluation() -> None:
    job = two_policies(
        agents=[{"match": "runner_.*", "policy": "runners"}, {"policy": "chasers", "train": False}], actors=actors()
    )
    job["policies"] = {name: policy | VALUES for name, policy in job["policies"].items()}
    plan = planned(TAG, **job)
    assert explored(plan, [0, 1], "chasers") == [0.0] * 8
    assert max(explored(plan, [0, 1], "runners")) == 0.5


def test_rule_that_says_nothing_of_exploration_has_none() -> None:
    assert acting_exploration(planned(), "default", [0]) is None


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            LADDER,
            "epsilon 0.5 to 0.25; by the number of each of 16 columns (agents of all environments), which another "
            "actors.ranks, ring or environments changes",
        ),
        (LADDER | {"exponent": 0.0}, "epsilon 0.5"),
        (
            LADDER | {"exponent": 0.0, "scale": {"start": 1.0, "end": 0.0, "steps": 400}},
            "epsilon 0.5 at first, 0 at step 400",
        ),
    ],
)
def test_plan_says_how_policies_explore(rule: dict[str, Any], text: str) -> None:
    (note,) = planned(**VALUES | {"algorithm": rule}, actors=actors()).notes
    assert note == f"policies.default explores: {text}"


def test_plan_says_when_exploration_ends_at_a_step() -> None:
    notes = planned(
        REACH,
        network={"kind": "mlp"},
        algorithm={"kind": "sac", "exploration": {"kind": "uniform_start", "steps": 5000}},
        batch={"fragments": 32},
        replay={},
        actors=actors(),
    ).notes
    assert notes == ("policies.default explores: uniform 1 until step 5,000, then 0; noise 1",)


class Odd(Settings):
    gives: Any = {}

    def explore(self, columns: Any, total: int, steps: int) -> Mapping[str, FloatArray]:  # noqa: ARG002
        given: Mapping[str, FloatArray] = self.gives
        return given


@pytest.mark.parametrize(
    ("gives", "text"),
    [
        (
            {"noise": np.zeros(2, np.float32)},
            "explores with ['noise'] in training, but with ['epsilon'] in evaluation; `explore` and "
            "`explore_in_evaluation` must have the same names",
        ),
        (
            {"epsilon": np.zeros(2)},
            "gives exploration 'epsilon' as float64 [2] [0.0, 0.0] for 2 columns; `explore` must give one finite "
            "float32 for each",
        ),
        (
            {"epsilon": np.full(2, np.nan, np.float32)},
            "gives exploration 'epsilon' as float32 [2] [nan, nan] for 2 columns; `explore` must give one finite "
            "float32 for each",
        ),
    ],
    ids=["names", "dtype", "finite"],
)
def test_exploration_that_does_not_fit_is_refused(gives: Any, text: str) -> None:
    rule = Odd.model_construct(kind="odd", gives=gives)
    with pytest.raises(UserError, match=re.escape(f"policies.x: algorithm odd {text}") + "$"):
        check_exploration("policies.x", rule, 16)
