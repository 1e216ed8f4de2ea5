"""A batch on its way to a device, with a stream that copies as late as it may."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from srlhpc.algorithms.algorithm import Batch
from srlhpc.comm.channel import Message
from srlhpc.data.blocks import BlockHeader
from srlhpc.data.layout import Axis, Field, Layout
from srlhpc.roles.training.copy_stream import CudaCopyStream
from srlhpc.roles.training.staging import Staging
from tests.roles.streams import LateCopyStream
from tests.roles.training.trainer_setup import BLOCKS, LAYOUT, A, E, T, Training

CPU = torch.device("cpu")


def block(value: int) -> Message:
    message = Message.allocate(LAYOUT, 0)
    for array in message.fields.values():
        array[...] = value
    message.header[BlockHeader.VALID] = message.header[BlockHeader.STEPS] = T
    return message


def fill(staging: Staging, value: int) -> None:
    for _ in range(BLOCKS):
        staging.add(block(value))


def batch_of(staging: Staging, *, first: bool = True) -> Batch:
    return staging.batch(version=0, steps=0, burn_in=0, is_first_use=first)


def with_stream() -> tuple[Staging, LateCopyStream]:
    stream = LateCopyStream()
    return Staging(LAYOUT, BLOCKS, CPU, stream), stream


def test_batch_is_sent_when_its_last_block_has_been_added() -> None:
    staging, stream = with_stream()
    copies = []
    for _ in range(BLOCKS):
        staging.add(block(1))
        copies.append(len(stream.copied))
    assert copies == [0] * (BLOCKS - 1) + [1]


def test_batch_is_sent_once_for_all_its_uses() -> None:
    staging, stream = with_stream()
    fill(staging, 1)
    first, second = batch_of(staging), batch_of(staging, first=False)
    assert len(stream.copied) == 1
    assert first.rewards.data_ptr() == second.rewards.data_ptr()


def test_blocks_of_the_next_batch_wait_until_the_last_has_been_copied() -> None:
    staging, stream = with_stream()
    fill(staging, 1)
    staging.clear()
    assert stream.copied[0].query()


def test_device_is_overwritten_after_the_computing_that_was_queued_when_the_batch_was_given_up() -> None:
    staging, stream = with_stream()
    fill(staging, 1)
    batch_of(staging)
    stream.computed = 7
    staging.clear()
    stream.computed = 9  # an update of another batch
    fill(staging, 2)
    assert stream.after == [0, 7]
    assert (batch_of(staging).rewards == 2).all()


def test_saved_batch_is_sent_when_it_is_loaded() -> None:
    staging, _ = with_stream()
    fill(staging, 1)
    other, stream = with_stream()
    fill(other, 2)
    assert other.load_state(staging.save_state())
    assert len(stream.copied) == 2
    assert (batch_of(other).rewards == 1).all()


def test_batch_on_the_cpu_is_the_memory_that_blocks_were_gathered_in() -> None:
    staging = Staging(LAYOUT, BLOCKS, CPU)
    fill(staging, 1)
    rewards = batch_of(staging).rewards
    staging.clear()
    staging.add(block(2))
    assert rewards[:, : E * A].eq(2).all()


@pytest.mark.parametrize("queue", [None, 2])
def test_training_by_way_of_a_lane_learns_from_the_same_batches(queue: int | None) -> None:
    seen = []
    for stream in (None, LateCopyStream()):
        training = Training(uses=2, queue=queue, stream=stream)
        for round_ in range(3):
            for actor in (0, 1):
                training.send(actor, version=round_)
            training.poll(25)
        training.poll(90)
        seen.append([batch.rewards for batch in training.algorithm.batches])
    assert len(seen[0]) == 6
    assert all(torch.equal(one, other) for one, other in zip(*seen, strict=True))


@pytest.mark.gpu
def test_batches_on_a_gpu_are_those_that_were_gathered_while_it_computes() -> None:
    device = torch.device("cuda", 0)
    stream = CudaCopyStream(device)
    stagings = [Staging(LAYOUT, BLOCKS, device, stream) for _ in range(2)]
    busy = torch.ones(2048, 2048, device=device)
    sums = []
    for value in range(20):
        staging = stagings[value % 2]
        staging.clear()
        fill(staging, value)
        batch = batch_of(staging)
        for _ in range(20):
            busy = busy @ busy / 2048
        sums.append(batch.observations["obs"].sum())
        assert batch.rewards.device == device
    found = torch.stack(sums).tolist()
    assert found == [float(value * (T + 1) * BLOCKS * E * A) for value in range(20)]
    np.testing.assert_array_equal(busy.cpu().numpy(), 1)


def test_field_without_agents_or_environments_is_that_of_all_its_columns() -> None:
    axes = (Axis.RECORD, Axis.ENVIRONMENT, Axis.AGENT)
    layout = Layout.of(
        [
            Field("whole", (T, 2, 3), "int64", axes),
            Field("of_environments", (T, 2, 5), "int64", axes[:2]),
            Field("of_the_group", (T,), "int64", axes[:1]),
            Field("per_fragment", (2, 3, 4), "int64", axes[1:]),
        ]
    )
    staging = Staging(layout, BLOCKS, CPU)
    blocks = [Message.allocate(layout, 0) for _ in range(BLOCKS)]
    for number, message in enumerate(blocks):
        for array in message.fields.values():
            array[...] = 1000 * number + np.arange(array.size).reshape(array.shape)
        staging.add(message)
    found = batch_of(staging).fields
    for number, message in enumerate(blocks):
        here = slice(6 * number, 6 * (number + 1))
        of = message.fields
        np.testing.assert_array_equal(found["whole"][:, here], of["whole"].reshape(T, 6))
        np.testing.assert_array_equal(found["of_environments"][:, here], of["of_environments"].repeat(3, axis=1))
        np.testing.assert_array_equal(found["of_the_group"][:, here], of["of_the_group"][:, None].repeat(6, axis=1))
        np.testing.assert_array_equal(found["per_fragment"][here], of["per_fragment"].reshape(6, 4))
