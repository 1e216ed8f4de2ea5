"""Network `minatar_cnn`: what the games of MinAtar were published with (Young and Tian 2019, arXiv:1903.03176)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import PositiveInt

from srlhpc.environment import Kind
from srlhpc.policies.layers.images import Convolution, check_images
from srlhpc.specs.action_values import ActionValueHead
from srlhpc.specs.actor_heads import ActorHead
from srlhpc.specs.contracts import Offer, action_values, actor_and_critics, phasic_actor_critic
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.policy import NormalizeSpec

if TYPE_CHECKING:
    from srlhpc.policies.actor_and_critics import TorsoActor
    from srlhpc.policies.contracts import ActionValuePolicy, ActorAndCritics, ActorCriticPolicy

LAYERS = (Convolution(16, kernel=3, stride=1),)


class Settings(NetworkSettings):
    """One convolution and one fully connected layer, shared by all heads; for images of few cells."""

    features: PositiveInt = 128
    """Units of the fully connected layer."""

    def check(self, kind: Kind) -> None:
        check_images("minatar_cnn", kind, LAYERS)

    def offers(self, kind: Kind) -> Mapping[str, Offer]:
        return {
            **super().offers(kind),
            **phasic_actor_critic(),
            **actor_and_critics(kind, has_memory=self.recurrent is not None),
            **action_values(kind),
        }


def build(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> ActorCriticPolicy:
    """The policy, initialised from torch's default generator."""
    from srlhpc.policies.convolutional import build_convolutional

    settings.check(kind)
    return build_convolutional(kind, normalize, LAYERS, settings.features, settings)


def build_actor(settings: Settings, kind: Kind, normalize: NormalizeSpec, head: ActorHead) -> TorsoActor:
    """What acts in the contract `actor_and_critics`, initialised from torch's default generator."""
    from srlhpc.policies.convolutional import build_convolutional_actor

    settings.check(kind)
    return build_convolutional_actor(kind, normalize, LAYERS, settings.features, settings, head)


def build_critics(settings: Settings, actor: TorsoActor, normalize: NormalizeSpec) -> ActorAndCritics[Any]:  # noqa: ARG001
    """What is trained in the contract `actor_and_critics`."""
    from srlhpc.policies.actor_and_critics import with_critics
    from srlhpc.policies.convolutional import torso_of

    return with_critics(actor, torso_of(actor.kind, actor.encoder, LAYERS, settings.features))


def build_action_values(
    settings: Settings, kind: Kind, normalize: NormalizeSpec, head: ActionValueHead
) -> ActionValuePolicy:
    """The policy as values of actions, initialised from torch's default generator."""
    from srlhpc.policies.convolutional import build_convolutional_values

    settings.check(kind)
    return build_convolutional_values(kind, normalize, LAYERS, settings.features, settings, head)
