"""What is reported of an episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from srlhpc.environment import Episode
from srlhpc.plan.planner import make_plan
from srlhpc.ranks.actors import episode_summary, group_summary
from srlhpc.specs.experiment import ExperimentSpec
from tests.launch.making_runs import settings
from tests.scripted import scripted_spaces


@pytest.fixture(scope="module")
def summary() -> Callable[[dict[str, float]], dict[str, Any]]:
    """Of an episode of hiders, which are trained, and seekers, which are not."""
    job = settings({"factory": "catch"}, stop={"updates": 1})
    agents = [
        {"match": "hider_.*", "policy": "hiders"},
        {"match": "seeker_.*", "policy": "seekers", "train": False},
    ]
    policies = {"hiders": job["policies"]["default"], "seekers": job["policies"]["default"]}
    spec = ExperimentSpec.model_validate(job | {"policies": policies, "agents": agents})
    spaces = scripted_spaces({"agent": ("hider_0", "hider_1", "seeker_0", "seeker_1")})
    of_episode = episode_summary(make_plan(spec, spaces))
    return lambda returns: of_episode(Episode(0, 5, returns, {"boxes": 2.0}))


def test_return_is_the_mean_of_the_trained_agents_and_each_policy_has_its_own(
    summary: Callable[[dict[str, float]], dict[str, Any]],
) -> None:
    assert summary({"hider_0": 1.0, "hider_1": 3.0, "seeker_0": -4.0, "seeker_1": -8.0}) == {
        "return": 2.0,
        "steps": 5,
        "policies": {"hiders": 2.0, "seekers": -6.0},
        "metrics": {"boxes": 2.0},
    }


def test_agents_that_were_not_in_the_game_dilute_no_mean(
    summary: Callable[[dict[str, float]], dict[str, Any]],
) -> None:
    told = summary({"hider_1": 3.0, "seeker_0": -4.0})
    assert (told["return"], told["policies"]) == (3.0, {"hiders": 3.0, "seekers": -4.0})


def test_episode_without_a_trained_agent_has_no_return(
    summary: Callable[[dict[str, float]], dict[str, Any]],
) -> None:
    told = summary({"seeker_0": -4.0})
    assert (told["return"], told["policies"]) == (None, {"seekers": -4.0})


def test_what_versions_get_is_not_reported() -> None:
    from tests.plan.test_matches import PSRO, matched

    told = group_summary(matched(**PSRO))
    episode = Episode(0, 5, {"left": 1.0, "right": -1.0}, {})
    assert told(1, episode) is None
    assert (told(0, episode) or {})["policies"] == {"default": 1.0}
    assert (told(2, episode) or {})["return"] == -1.0
