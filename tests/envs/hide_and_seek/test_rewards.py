from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.rewards import outside, penalize, team_rewards
from tests.envs.hide_and_seek.scene import Scene, facing

TWO = np.array([[True, True]])


def rewards(share: str, sees: list[list[int]]) -> list[float]:
    """Of two hiders and two seekers; `sees` has a row for each seeker."""
    return team_rewards(np.array([sees], bool), TWO, TWO, share)[0].tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("share", "expected"),
    [("joint_zero_sum", [-1, -1, 1, 1]), ("selfish", [-1, 1, 1, -1]), ("joint_mean", [0, 0, 0, 0])],
)
def test_rewards_when_one_seeker_sees_one_hider(share: str, expected: list[float]) -> None:
    assert rewards(share, [[1, 0], [0, 0]]) == expected


@pytest.mark.parametrize("share", ["joint_zero_sum", "selfish", "joint_mean"])
def test_rewards_when_nobody_is_seen(share: str) -> None:
    assert rewards(share, [[0, 0], [0, 0]]) == [1, 1, -1, -1]


def test_mean_is_over_those_in_the_game() -> None:
    sees = np.array([[[True, False, False], [False, False, False]]])
    hiders, seekers = np.array([[True, True, False]]), np.array([[True, False]])
    assert team_rewards(sees, hiders, seekers, "joint_mean")[0].tolist() == [0, 0, 0, 1, 0]
    assert team_rewards(sees, hiders, seekers, "selfish")[0].tolist() == [-1, 1, 0, 1, 0]
    assert team_rewards(sees, hiders, seekers, "joint_zero_sum")[0].tolist() == [-1, -1, 0, 1, 0]


def test_outside_is_beyond_the_edges() -> None:
    centres = np.array([[-0.1, 1.0, 0.0], [0.0, 2.0, 0.0], [3.1, 1.0, 0.0], [1.0, -0.1, 0.0], [1.0, 2.1, 0.0]])
    assert outside(centres, (0.0, 0.0, 3.0, 2.0)).tolist() == [True, False, True, True, True]


def test_a_penalty_replaces_rewards() -> None:
    values = np.array([[1.0, -1.0], [1.0, -1.0]])
    penalize(values, np.array([[False, True], [False, False]]), None)
    assert values.tolist() == [[1, -10], [1, -1]]
    penalize(values, np.zeros((2, 2), bool), np.array([[False], [True]]))
    assert values.tolist() == [[1, -10], [-10, -10]]


def test_rewards_follow_what_is_seen_after_the_step() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], seekers=[(1.0, 0.0)])
    scene.put(1, angle=facing((1, 0), (0, 0), off=1.4))
    assert not scene.sees(1, 0)
    scene.step((5, 5, 5, 0, 0), (5, 5, 0, 0, 0))
    assert scene.sees(1, 0)
    assert scene.rewards == [-1.0, 1.0]


def test_an_agent_outside_is_punished_alone() -> None:
    scene = Scene(
        hiders=[(0.0, 0.0)], seekers=[(3.0, 3.0)], boxes=[(20.0, 0.0)], scenario={"restrict": [-6, -6, 12, 12]}
    )
    scene.put(0, x=12.5)
    scene.step()
    assert scene.rewards == [-10.0, -1.0]


def test_objects_outside_punish_everybody_where_that_is_the_rule() -> None:
    scenario = {"restrict": [0.1, 0.1, 5.9, 5.9], "penalize_objects_out": True}
    scene = Scene(hiders=[(1.0, 5.0)], seekers=[(3.0, 3.0)], boxes=[(5.0, 5.0)], scenario=scenario)
    scene.step()
    assert scene.rewards == [1.0, -1.0]
    scene.put(2, x=5.95)
    scene.step()
    assert scene.rewards == [-10.0, -10.0]
