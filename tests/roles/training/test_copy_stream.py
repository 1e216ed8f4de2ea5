"""A part of a checkpoint that is copied to the host while training goes on."""

from __future__ import annotations

import pytest
import torch

from srlhpc.roles.training.copy_stream import CudaCopyStream, PartCopy
from tests.roles.streams import LateCopyStream
from tests.roles.training.trainer_setup import BLOCKS, Training


def test_part_is_that_of_the_moment_it_was_asked_for_and_leaves_when_it_has_landed() -> None:
    stream = LateCopyStream()
    training = Training(stream=stream)
    training.obey(checkpoint=1)
    training.poll(3)
    for _ in range(BLOCKS):
        training.send()
    training.poll()
    assert training.trainer.version == 1
    assert training.part() is None
    stream.land()
    training.poll(3)
    number, part = training.part() or (0, {})
    assert (number, part["counters"]["version"]) == (1, 0)
    assert part["parameters"]["weight"].tolist() == [0.0]
    assert part["optimizer"]["momentum"].tolist() == [0.0, 0.0]


def test_next_part_goes_the_same_way_as_the_first() -> None:
    stream = LateCopyStream()
    training = Training(stream=stream)
    numbers = []
    for number in (1, 2):
        training.obey(checkpoint=number)
        training.poll(3)
        stream.land()
        training.poll(3)
        numbers.append((training.part() or (0, {}))[0])
        training.poll(3)
    assert numbers == [1, 2]


def test_arrays_are_filled_whatever_their_number_of_axes() -> None:
    stream = LateCopyStream()
    tensors = {"optimizer": {"step": torch.tensor(3.0), "moment": torch.ones(2, 2)}}
    copy = PartCopy(tensors, stream)
    arrays = copy.begin(tensors)["optimizer"]
    assert not copy.has_landed()
    stream.land()
    assert copy.has_landed()
    assert (arrays["step"].tolist(), arrays["moment"].tolist()) == (3.0, [[1, 1], [1, 1]])


@pytest.mark.gpu
def test_part_of_a_gpu_does_not_change_with_what_is_computed_after() -> None:
    device = torch.device("cuda", 0)
    weight = torch.ones(1 << 22, device=device)
    copy = PartCopy({"parameters": {"weight": weight}}, CudaCopyStream(device))
    arrays = copy.begin({"parameters": {"weight": weight}})
    weight.zero_()
    while not copy.has_landed():
        pass
    assert (arrays["parameters"]["weight"] == 1).all()
