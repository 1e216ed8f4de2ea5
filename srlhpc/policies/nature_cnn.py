"""Network `nature_cnn`: the convolutional network of Mnih et al. 2015 (Nature 518, "Human-level control ...")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import PositiveInt

from srlhpc.environment import Kind
from srlhpc.policies.layers.images import Convolution, check_images
from srlhpc.specs.experiment import NormalizeSpec
from srlhpc.specs.named_modules import NetworkSettings

if TYPE_CHECKING:
    from srlhpc.policies.contracts import ActorCriticPolicy

LAYERS = (Convolution(32, kernel=8, stride=4), Convolution(64, kernel=4, stride=2), Convolution(64, kernel=3, stride=1))


class Settings(NetworkSettings):
    """Three convolutions and one fully connected layer, shared by policy and value."""

    features: PositiveInt = 512
    """Units of the fully connected layer."""

    def check(self, kind: Kind) -> None:
        check_images("nature_cnn", kind, LAYERS)


def build(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> ActorCriticPolicy:
    """The policy, initialised from torch's default generator."""
    from srlhpc.policies.convolutional import build_convolutional

    settings.check(kind)
    return build_convolutional(kind, normalize, LAYERS, settings.features, settings)
