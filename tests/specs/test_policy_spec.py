"""Settings of one policy that must fit each other."""

from __future__ import annotations

from typing import Any

import pytest

from srlhpc.errors import UserError
from srlhpc.specs.load import load_text
from srlhpc.specs.policy import PolicySpec
from tests.specs.jobs import JOB

POLICY = "policies.default"
MEMORY = f"{POLICY}.network.recurrent={{kind: lstm}}"


def policy(*changes: str) -> PolicySpec:
    return load_text(JOB, "job.yaml", [MEMORY, f"{POLICY}.algorithm.minibatches=1", *changes]).policies["default"]


@pytest.mark.parametrize(("chunk_steps", "chunks"), [("null", 1), ("16", 1), ("4", 4)])
def test_a_fragment_has_as_many_chunks_as_fit(chunk_steps: str, chunks: int) -> None:
    assert policy(f"{POLICY}.batch.chunk_steps={chunk_steps}").batch.chunks == chunks


REFUSED: dict[str, tuple[list[str], str]] = {
    "a word that is none of two alternatives": (
        ["max_policy_lag=always"],
        r"max_policy_lag: is 'always'; it must be a whole number or 'auto'\.",
    ),
    "chunks of a fragment": (
        ["batch.chunk_steps=5"],
        r"chunk_steps: is 5, which does not divide fragment_steps \(16\)",
    ),
    "chunks and burn-in": (
        ["batch.chunk_steps=4", "batch.burn_in_steps=2"],
        "chunk_steps: is 4 but burn_in_steps is 2",
    ),
    "minibatches of chunks": (
        ["batch.chunk_steps=8", "algorithm.minibatches=5"],
        "minibatches is 5, which does not divide a trainer's batch of 16 fragments or their chunks",
    ),
    "queue of batches used once": (["batch.queue=4"], "queue: is 4 but uses is 1, so none is kept"),
    "decay": (["normalize.decay=1.0"], "normalize.decay"),
}


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED)
def test_settings_that_do_not_fit_are_refused(changes: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        policy(*(f"{POLICY}.{change}" for change in changes))


HIDE_AND_SEEK: dict[str, Any] = {
    "network.kind": "entities",
    "network.own": "[observation_self]",
    "network.rings": "{lidar: {channels: 9, kernel: 3}}",
    "network.sets": "{agent_qpos_qvel: {visible: mask_aa_obs, exists: mask_aa_obs_spoof}}",
    "network.recurrent": "{kind: lstm, size: 256}",
    "normalize": "{observations: true, returns: targets_only, decay: 0.99999, observation_clip: 5.0, "
    "smallest_std: 0.1}",
    "algorithm": "{kind: ppo, learning_rate: 3e-4, gamma: 0.998, gae_lambda: 0.95, clip_ratio: 0.2, "
    "value_coefficient: 1.0, entropy_coefficient: 0.01, epochs: 1, minibatches: 1, "
    "max_gradient_norm: 5.0, weight_decay: 1e-6}",
    "batch": "{fragments: 500, fragment_steps: 160, chunk_steps: 10, uses: 4, queue: 16}",
    "max_policy_lag": "200",
}


def test_the_published_settings_of_hide_and_seek_can_be_written() -> None:
    job = JOB.replace("{factory: catch}", "{factory: synthetic}")
    changes = [f"{POLICY}.{key}={value}" for key, value in HIDE_AND_SEEK.items()]
    made = load_text(job, "job.yaml", changes).policies["default"]
    assert (made.batch.fragments * made.batch.chunks, made.batch.uses, made.batch.queue) == (8000, 4, 16)
