"""Specs that cannot work are refused with the reason and a remedy."""

from __future__ import annotations

import re
from typing import Any

import pytest

from srlhpc.environment import ArraySpec, Discrete, Kind, Spaces
from srlhpc.errors import UserError
from tests.plan.test_planner import ALONE, TAG, actors, planned, two_policies

MIXED = Spaces(
    (
        Kind("cat", ("tom",), {"obs": ArraySpec((3,), "float32")}, Discrete(4)),
        Kind("mouse", ("jerry",), {"obs": ArraySpec((2,), "float32")}, Discrete(4)),
    )
)
HUGE = Spaces((Kind("agent", ("agent",), {"obs": ArraySpec((1 << 24,), "float32")}, Discrete(4)),))


@pytest.mark.parametrize(
    ("spaces", "changes", "text"),
    [
        (
            ALONE,
            {"batch": {"fragments": 10, "fragment_steps": 8}},
            "policies.default.batch.fragments: is 10; one block brings 4 fragments (4 environments x 1 trained "
            "agent), and a batch is a whole number of blocks: use a multiple of 4, or change actors.environments",
        ),
        (
            ALONE,
            {"actors": actors(ranks=1, ring=2), "trainers": {"ranks": 3}},
            "actors: 2 groups (ranks x ring) cannot feed 3 trainers of policy default; raise actors.ranks or "
            "actors.ring",
        ),
        (
            TAG,
            {"agents": [{"match": "runner_.*"}]},
            "agents: no entry matches agent 'chaser_0' of the environment; add one, for example {match: '.*', "
            "policy: default}",
        ),
        (
            TAG,
            two_policies(agents=[{"policy": "chasers"}]),
            "policies.runners: no agent uses it; the environment's agents are runner_0, runner_1, chaser_0",
        ),
        (
            MIXED,
            {},
            "policies.default: plays agents of different observation or action spaces (cat, mouse); give each its own "
            "policy in `agents`",
        ),
        (
            ALONE,
            {"agents": [{"train": False}]},
            "agents: no entry that plays has `train: true`, so nothing would be trained",
        ),
        (
            TAG,
            two_policies(
                actors=actors("trainer"),
                agents=[{"match": "runner_.*", "policy": "runners"}, {"policy": "chasers", "train": False}],
            ),
            "actors.inference.kind: is 'trainer'; every policy must be trained then",
        ),
        (
            ALONE,
            {"serial": True, "trainers": {"ranks": 2}},
            "trainers.ranks: is 2; a serial run has one trainer per policy",
        ),
        (
            HUGE,
            {},
            "policies.default: one block has 2.4 GB; at most 2 GiB fit in a message: lower actors.environments or "
            "batch.fragment_steps",
        ),
    ],
)
def test_spec_that_cannot_work_is_refused(spaces: Spaces, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text) + "$"):
        planned(spaces, **changes)


def test_image_network_without_images_is_refused() -> None:
    with pytest.raises(UserError, match="nature_cnn"):
        planned(network={"kind": "nature_cnn"})


def test_algorithm_whose_feedback_nobody_takes_is_refused() -> None:
    text = r"policies.default.algorithm: tests.plan.wanting gives feedback .* choose an algorithm that gives none"
    with pytest.raises(UserError, match=text):
        planned(algorithm={"kind": "tests.plan.wanting", "feedback": True})


def test_settings_that_have_no_effect_are_noted() -> None:
    (note,) = planned(actors=actors("inline"), policy_servers={"ranks": 2}).notes
    assert "policy_servers is not used: with actors.inference.kind inline" in note


def test_serial_run_says_how_often_it_checkpoints() -> None:
    (note,) = planned(serial=True).notes
    assert "a checkpoint every 50 updates" in note
    replay = {"capacity": 1000, "samples_per_insert": 4.0}
    rule = {"kind": "tests.plan.wanting", "data": "replay"}
    assert "every 2000 updates" in planned(serial=True, algorithm=rule, replay=replay).notes[0]
    assert planned(serial=True, checkpoint={"every_updates": 3}).notes == ()


def test_policies_whose_fragments_end_within_others_are_noted_where_their_lag_is_limited() -> None:
    def notes(steps: int, lag: int | None) -> tuple[str, ...]:
        job = two_policies()
        for name, length in (("runners", steps), ("chasers", 8)):
            fragments = {"max_policy_lag": lag, "batch": {"fragments": 8, "fragment_steps": length}}
            job["policies"] |= {name: job["policies"][name] | fragments}
        return planned(TAG, **job).notes

    (note,) = notes(12, 0)
    assert "policies.runners: its fragments (12 steps) end within another policy's (chasers 8)" in note
    assert notes(16, 0) == notes(12, None) == ()
