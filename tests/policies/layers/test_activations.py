from __future__ import annotations

import torch

from srlhpc.policies.layers.activations import tanh


def test_tanh_equals_torchs_and_so_does_its_gradient() -> None:
    x = torch.linspace(-20, 20, 4001, requires_grad=True)
    weights = torch.linspace(1, 2, 4001)
    (found,) = torch.autograd.grad((tanh(x) * weights).sum(), x)
    (expected,) = torch.autograd.grad((torch.tanh(x) * weights).sum(), x)
    torch.testing.assert_close(tanh(x), torch.tanh(x), rtol=1e-6, atol=0)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_tanh_of_what_numpy_cannot_take_is_torchs() -> None:
    strided = torch.randn(8, 8)[:, ::2]
    half = torch.randn(8).bfloat16()
    assert torch.equal(tanh(strided), torch.tanh(strided))
    assert torch.equal(tanh(half), torch.tanh(half))


def test_tanh_in_inference_has_no_gradient() -> None:
    weights = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        assert not tanh(weights * 2).requires_grad
