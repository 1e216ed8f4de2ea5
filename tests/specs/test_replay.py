"""What is kept of the past fits the batches that are drawn from it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from srlhpc.errors import UserError
from srlhpc.specs.load import load_text
from srlhpc.specs.policy import PolicySpec
from srlhpc.specs.replay import PrioritizedDraw, ReplaySpec
from srlhpc.specs.schedule import LinearSchedule
from tests.specs.jobs import JOB

POLICY = "policies.default"
MEMORY = f"{POLICY}.network.recurrent={{kind: lstm}}"
REPLAY = f"{POLICY}.replay={{capacity: 1000, samples_per_insert: 4}}"


def policy(*changes: str) -> PolicySpec:
    return load_text(JOB, "job.yaml", [REPLAY, *(f"{POLICY}.{change}" for change in changes)]).policies["default"]


REFUSED: dict[str, tuple[list[str], str]] = {
    "uses of a batch": (["batch.uses=2"], r"batch\.uses: is 2 beside replay, which draws a new batch for every update"),
    "queue of batches": (["batch.uses=2", "batch.queue=3"], r"batch\.uses: is 2 beside replay"),
    "chunks": (["batch.chunk_steps=8", "network.recurrent={kind: lstm}"], r"batch\.chunk_steps: is 8 beside replay"),
    "limit of the policy lag": (["max_policy_lag=3"], r"max_policy_lag: is 3 beside replay, .* leave it out"),
    "no limit of the policy lag": (["max_policy_lag=null"], r"max_policy_lag: is null beside replay"),
    "normalised returns": (
        ["normalize.returns=true"],
        r"normalize\.returns: is true beside replay, .*set it to false",
    ),
    "scaled targets": (["normalize.returns=targets_only"], r"normalize\.returns: is targets_only beside replay"),
    "stride": (["replay.stride=5"], r"block_steps: is 32, which is no multiple of stride \(5\)"),
    "stride that follows from memory": (
        ["network.recurrent={kind: lstm}", "batch.fragment_steps=24"],
        r"block_steps: is 32, which is no multiple of batch\.fragment_steps \(24\), which is the stride here",
    ),
    "exponent of weights": (["replay.draw={kind: prioritized, beta: 1.5}"], r"beta: goes to 1\.5; it must stay in"),
    "two ways of drawing": (["replay.draw={kind: uniform, alpha: 0.5}"], "alpha"),
}


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED)
def test_settings_that_do_not_fit_replay_are_refused(changes: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        policy(*changes)


def test_burn_in_of_replay_may_be_longer_than_what_is_trained() -> None:
    read = policy("network.recurrent={kind: lstm}", "batch.fragment_steps=8", "batch.burn_in_steps=16")
    assert read.batch.burn_in_steps == 16


@pytest.mark.parametrize(
    ("stride", "has_memory", "expected"), [(None, False, 1), (None, True, 16), (8, True, 8), (4, False, 4)]
)
def test_windows_start_at_every_record_and_with_memory_where_states_are(
    stride: int | None, has_memory: bool, expected: int
) -> None:
    assert ReplaySpec(capacity=1, samples_per_insert=1.0, stride=stride).window_stride(16, has_memory) == expected


def test_exponent_of_importance_weights_may_be_a_schedule() -> None:
    draw = PrioritizedDraw(beta=LinearSchedule(start=0.4, end=1.0, steps=100))
    assert [draw.beta_at(steps) for steps in (0, 50, 200)] == pytest.approx([0.4, 0.7, 1.0])
    with pytest.raises(ValidationError, match=r"goes to -0\.5"):
        PrioritizedDraw(beta=LinearSchedule(start=-0.5, end=1.0, steps=100))
