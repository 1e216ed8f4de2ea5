"""Bytes that a plan takes."""

from __future__ import annotations

import torch

from srlhpc.environment import ArraySpec, Discrete, Kind, Spaces, Stack
from srlhpc.plan.layouts import block_layout
from srlhpc.plan.sizes import batch_blocks, batches_bytes
from srlhpc.roles.training.staging import Staging
from tests.plan.test_planner import planned

FRAMES = 4


def of_frames(stacks: dict[str, Stack]) -> Spaces:
    pictures = {"obs": ArraySpec((FRAMES, 32, 32), "uint8")}
    return Spaces((Kind("agent", ("agent",), pictures, Discrete(2), stacks=stacks),))


def test_batches_hold_frames_once_and_the_one_in_use_whole_stacks_too() -> None:
    network = {"kind": "impala_cnn"}
    whole, once = (planned(of_frames(stacks), network=network) for stacks in ({}, {"obs": Stack(FRAMES, "zeros")}))
    assert block_layout(once, "default").size_bytes < block_layout(whole, "default").size_bytes / 2
    layout, blocks = block_layout(once, "default"), batch_blocks(once, "default")
    held = Staging(layout, blocks, torch.device("cpu"))
    stacks = held.batch(version=0, steps=0, burn_in=0).observations["obs"].nbytes
    buffers = once.spec.policies["default"].batch.buffers
    real = stacks + buffers * sum(array.nbytes for array in held.save_state()["fields"].values())
    assert 0.95 < batches_bytes(once, "default") / real < 1.05
    assert batches_bytes(once, "default") < batches_bytes(whole, "default")
