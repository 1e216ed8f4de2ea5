"""Totals, windows and rates of a run."""

from __future__ import annotations

import math
from typing import Any

from srlhpc.roles.coordinating.progress import Progress
from tests.roles.coordinating.coordinator_setup import episode, update


def test_restored_progress_goes_on_where_it_was() -> None:
    before = Progress("default", 4, now=0.0)
    before.add_episodes([episode(1.0), episode(2.0)])
    before.add_update(update(3))
    after = Progress("default", 4, now=100.0, restored=before.to_meta(now=50.0))
    assert (after.updates, after.steps, after.agent_steps, after.episodes) == (3, 30, 60, 2)
    assert after.return_mean == 1.5
    assert after.seconds(110.0) == 60.0


def test_mean_return_without_episodes_is_none_and_not_a_number_in_the_checkpoint() -> None:
    progress = Progress("default", 1, now=0.0)
    assert progress.return_mean is None
    assert math.isnan(progress.to_meta(0.0)["return_mean"])


def test_rate_is_over_the_last_ten_seconds() -> None:
    progress = Progress("default", 1, now=0.0)
    for second in range(1, 31):
        progress.add_update(update(second if second < 20 else 20 + 3 * (second - 20)))
        rate = progress.steps_per_second(float(second))
    assert rate == 30.0


def test_rate_of_a_resumed_run_does_not_count_what_came_before() -> None:
    progress = Progress("default", 1, now=0.0, restored={"steps": 1_000_000})
    assert progress.steps_per_second(1.0) == 0.0


def test_other_policies_have_details_but_are_not_the_runs_counters() -> None:
    progress = Progress("default", 1, now=0.0)
    progress.add_update(update(9, policy="other"))
    assert progress.summary(1.0)["updates"] == 0
    assert progress.details()["policies"]["other"]["updates"] == 9


def with_boxes(boxes: float) -> dict[str, Any]:
    return episode(boxes) | {"policies": {"default": boxes}, "metrics": {"boxes": boxes}}


def test_statistics_of_episodes_are_averaged() -> None:
    progress = Progress("default", 1, now=0.0)
    progress.add_episodes([with_boxes(2.0), with_boxes(4.0)])
    assert progress.summary(1.0)["episode"] == {"boxes": 3.0}


def test_means_over_episodes_do_not_start_anew_with_a_resume() -> None:
    before = Progress("default", 1, now=0.0)
    before.add_episodes([with_boxes(2.0), with_boxes(4.0)])
    after = Progress("default", 1, now=0.0, restored=before.to_meta(now=1.0))
    after.add_episodes([with_boxes(12.0)])
    after.add_update(update(1))
    assert after.summary(1.0)["episode"] == {"boxes": 6.0}
    assert after.details()["policies"]["default"]["return_mean"] == 6.0


def test_episode_without_a_trained_agent_counts_but_is_in_no_mean_return() -> None:
    progress = Progress("default", 1, now=0.0)
    progress.add_episodes([episode(2.0), episode(2.0) | {"return": None, "policies": {}}])
    assert (progress.episodes, progress.return_mean) == (2, 2.0)
