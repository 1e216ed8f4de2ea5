"""Convolutions with their ReLU against the two one after the other."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from srlhpc.policies.layers.rectified import rectified

SHAPES = {
    "stride 1": ((6, 3, 9, 9), (5, 3, 3, 3), 1),
    "pixels of a row as one": ((6, 4, 20, 20), (8, 4, 4, 4), 2),
    "quadruples of pixels": ((2, 4, 84, 84), (32, 4, 8, 8), 4),
    "rows that nothing sees": ((3, 2, 11, 12), (4, 2, 4, 4), 2),
    "a width that the stride does not divide": ((3, 2, 12, 11), (4, 2, 4, 4), 2),
    "a kernel that the stride does not divide": ((3, 2, 12, 12), (4, 2, 3, 3), 2),
    "one image": ((1, 4, 20, 20), (8, 4, 4, 4), 2),
}


class _Inputs(NamedTuple):
    images: Tensor
    weight: Tensor
    bias: Tensor
    stride: int

    def gradients(self) -> list[Tensor]:
        found = [tensor.grad for tensor in (self.images, self.weight, self.bias) if tensor.grad is not None]
        assert len(found) == 3
        return found


def _inputs(name: str, dtype: torch.dtype) -> _Inputs:
    shape, filters, stride = SHAPES[name]
    generator = torch.Generator().manual_seed(3)
    images, weight, bias = (
        torch.randn(sizes, generator=generator).to(dtype) for sizes in (shape, filters, filters[:1])
    )
    images = images.contiguous(memory_format=torch.channels_last)
    return _Inputs(images.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), stride)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients_are_those_of_both(name: str, dtype: torch.dtype) -> None:
    ours, theirs = _inputs(name, dtype), _inputs(name, dtype)
    y = rectified(*ours)
    expected = torch.relu(functional.conv2d(*theirs))
    weights = torch.linspace(-1.0, 1.0, y.numel()).reshape(y.shape).to(dtype)
    torch.autograd.backward([y, expected], [weights, weights])
    rounding = 1e-4 if dtype == torch.float32 else 0.02
    torch.testing.assert_close(y, expected, rtol=rounding, atol=rounding)
    for mine, other in zip(ours.gradients(), theirs.gradients(), strict=True):
        torch.testing.assert_close(mine, other, rtol=rounding, atol=rounding * other.abs().max().item())


@pytest.mark.parametrize("name", SHAPES)
def test_acting_gives_what_training_gives(name: str) -> None:
    inputs = _inputs(name, torch.float32)
    with torch.no_grad():
        acted = rectified(*inputs)
    torch.testing.assert_close(acted, rectified(*inputs), rtol=1e-5, atol=1e-5)


def test_what_is_not_a_number_stays_so() -> None:
    inputs = _inputs("pixels of a row as one", torch.float32)
    weight = inputs.weight.detach().clone()
    weight[0] = torch.nan
    assert rectified(inputs.images, weight, inputs.bias, inputs.stride)[:, 0].isnan().all()


def test_no_images_give_no_outputs() -> None:
    inputs = _inputs("pixels of a row as one", torch.float32)
    assert rectified(inputs.images[:0], *inputs[1:]).shape == (0, 8, 9, 9)


def test_weights_are_cast_as_autocast_would() -> None:
    inputs = _inputs("pixels of a row as one", torch.float32)
    images = inputs.images.detach().to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = rectified(images, *inputs[1:])
        expected = torch.relu(functional.conv2d(images, *inputs[1:]))
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y, expected, rtol=0.02, atol=0.02)
    torch.autograd.backward(y, torch.ones_like(y))
    assert inputs.weight.grad is not None
    assert inputs.weight.grad.dtype == torch.float32
