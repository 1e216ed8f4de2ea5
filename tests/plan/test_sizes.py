"""Bytes that a plan takes."""

from __future__ import annotations

from srlhpc.environment import ArraySpec, Discrete, Kind, Spaces, Stack
from srlhpc.plan.layouts import block_layout
from srlhpc.plan.sizes import batches_bytes
from tests.plan.test_planner import planned

FRAMES = 4


def of_frames(stacks: dict[str, Stack]) -> Spaces:
    pictures = {"obs": ArraySpec((FRAMES, 32, 32), "uint8")}
    return Spaces((Kind("agent", ("agent",), pictures, Discrete(2), stacks=stacks),))


def test_batches_are_counted_with_whole_stacks_though_blocks_hold_frames_once() -> None:
    network = {"kind": "impala_cnn"}
    whole, once = (planned(of_frames(stacks), network=network) for stacks in ({}, {"obs": Stack(FRAMES, "zeros")}))
    assert block_layout(once, "default").size_bytes < block_layout(whole, "default").size_bytes / 2
    # The flags that say where stacks begin come on top.
    assert 0 <= batches_bytes(once, "default") - batches_bytes(whole, "default") < 10_000
