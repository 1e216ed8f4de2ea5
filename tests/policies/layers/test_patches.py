"""Images as patches: the convolution and its gradients are those of the images."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from srlhpc.environment import ArraySpec
from srlhpc.policies.layers.images import Convolution
from srlhpc.policies.layers.observations import ObservationEncoder
from srlhpc.policies.layers.patches import Patches, patch_weight
from srlhpc.policies.layers.torsos import CnnTorso
from srlhpc.specs.policy import NormalizeSpec

ATARI = Convolution(5, kernel=8, stride=4)


@pytest.mark.parametrize(
    ("shape", "layer"),
    [
        ((4, 84, 84), ATARI),
        ((3, 210, 160), ATARI),
        ((1, 9, 10), Convolution(3, kernel=2, stride=2)),
        ((2, 24, 32), Convolution(3, kernel=16, stride=8)),
    ],
    ids=["stack", "rows-over", "one-by-one", "eight"],
)
def test_convolution_of_patches_is_that_of_images(shape: tuple[int, int, int], layer: Convolution) -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (3, *shape), dtype=torch.uint8, generator=generator)
    weight = torch.randn(layer.channels, shape[0], layer.kernel, layer.kernel, dtype=torch.float64, generator=generator)
    weight.requires_grad_()
    expected = functional.conv2d(images.double(), weight, stride=layer.stride)
    patches = Patches.over([ArraySpec(shape, "uint8")], layer)
    assert patches is not None
    found = functional.conv2d(patches(images).double(), patch_weight(weight, layer.stride))
    torch.testing.assert_close(found, expected)
    by = torch.randn(expected.shape, dtype=torch.float64, generator=generator)
    gradients = [torch.autograd.grad(made, weight, by)[0] for made in (found, expected)]
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize(
    ("dtype", "width", "layer"),
    [
        ("float32", 84, ATARI),
        ("uint8", 86, ATARI),
        ("uint8", 84, Convolution(5, kernel=6, stride=4)),
        ("uint8", 84, Convolution(5, kernel=3, stride=1)),
    ],
    ids=["floats", "width", "kernel", "stride"],
)
def test_other_images_are_not_cut(dtype: str, width: int, layer: Convolution) -> None:
    assert Patches.over([ArraySpec((4, 84, width), dtype)], layer) is None


def test_images_that_are_no_bytes_any_more_are_taken_as_they_are() -> None:
    specs = {"screen": ArraySpec((4, 84, 84), "uint8")}
    encoder = ObservationEncoder(specs, images=True, normalize=NormalizeSpec(), first=ATARI)
    images = torch.rand(2, 4, 84, 84)
    found = encoder({"screen": images}).images
    assert found is not None
    assert torch.equal(found, images)


def test_no_rows_are_no_patches() -> None:
    patches = Patches.over([ArraySpec((4, 84, 84), "uint8")], ATARI)
    assert patches is not None
    assert patches(torch.zeros(0, 4, 84, 84, dtype=torch.uint8)).shape == (0, 64, 21, 21)


def test_torso_gives_the_same_for_two_images_with_and_without_patches() -> None:
    specs = {"near": ArraySpec((3, 36, 40), "uint8"), "far": ArraySpec((1, 36, 40), "uint8")}
    generator = torch.Generator().manual_seed(1)
    # Fragments of two records of three columns, whose rows are not side by side in memory.
    arrays = {
        key: torch.randint(256, (3, 2, *spec.shape), dtype=torch.uint8, generator=generator).transpose(0, 1)
        for key, spec in specs.items()
    }
    encoders = [
        ObservationEncoder(specs, images=True, normalize=NormalizeSpec(), first=first) for first in (ATARI, None)
    ]
    torso = CnnTorso(encoders[0].image_scales, 36, 40, 0, [ATARI], features=7)
    found, expected = (encoder(arrays) for encoder in encoders)
    assert found.images.shape == (6, 64, 9, 10)
    torch.testing.assert_close(torso(found), torso(expected))
