"""Network `impala_cnn`: the small network of Espeholt et al. 2018 (IMPALA, arXiv:1802.01561, figure 3 left)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import PositiveInt

from srlhpc.environment import Kind
from srlhpc.policies.layers.images import Convolution, check_images
from srlhpc.specs.experiment import NormalizeSpec
from srlhpc.specs.named_modules import NetworkSettings

if TYPE_CHECKING:
    from srlhpc.policies.contracts import ActorCriticPolicy

LAYERS = (Convolution(16, kernel=8, stride=4), Convolution(32, kernel=4, stride=2))


class Settings(NetworkSettings):
    """Two convolutions and one fully connected layer, shared by policy and value."""

    features: PositiveInt = 256
    """Units of the fully connected layer."""

    def check(self, kind: Kind) -> None:
        check_images("impala_cnn", kind, LAYERS)


def build(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> ActorCriticPolicy:
    """The policy, initialised from torch's default generator."""
    from srlhpc.policies.convolutional import build_convolutional

    settings.check(kind)
    return build_convolutional(kind, normalize, LAYERS, settings.features, settings)
