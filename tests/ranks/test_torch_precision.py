"""What torch is told about products on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from srlhpc.ranks.torch_precision import Precision, set_matmul_precision


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


@pytest.mark.parametrize(
    ("precision", "told"),
    [("float32", ("highest", False)), ("tf32", ("high", True)), ("bfloat16", ("highest", False))],
)
def test_products_on_a_gpu_are_those_that_were_asked_for(precision: Precision, told: tuple[str, bool]) -> None:
    set_matmul_precision(torch.device("cuda"), precision)
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == told


def test_products_on_a_cpu_stay_as_they_are() -> None:
    set_matmul_precision(torch.device("cpu"), "tf32")
    assert torch.get_float32_matmul_precision() == "highest"
