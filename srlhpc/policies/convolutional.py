"""How the image networks put a policy together."""

from __future__ import annotations

from collections.abc import Sequence

from srlhpc.environment import Kind
from srlhpc.policies.action_values import ActionValueNetwork
from srlhpc.policies.actor_and_critics import TorsoActor, TorsoOf
from srlhpc.policies.actor_critic import ActorCritic
from srlhpc.policies.layers.images import Convolution, is_image
from srlhpc.policies.layers.observations import ObservationEncoder
from srlhpc.policies.layers.recurrent import memory_of
from srlhpc.policies.layers.torsos import CnnTorso
from srlhpc.specs.action_values import ActionValueHead
from srlhpc.specs.actor_heads import ActorHead
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.policy import NormalizeSpec


def build_convolutional(
    kind: Kind,
    normalize: NormalizeSpec,
    layers: Sequence[Convolution],
    features: int,
    settings: NetworkSettings,
) -> ActorCritic:
    """An actor-critic with one convolutional torso for both heads; the images were checked by `check_images`."""
    encoder = _encoder(kind, normalize, layers)
    torso = torso_of(kind, encoder, layers, features)(encoder.vector_size)
    return ActorCritic(
        kind,
        encoder,
        torso,
        memory=memory_of(settings.recurrent, features),
        normalize=normalize,
        initial_log_std=settings.initial_log_std,
    )


def build_convolutional_values(
    kind: Kind,
    normalize: NormalizeSpec,
    layers: Sequence[Convolution],
    features: int,
    settings: NetworkSettings,
    head: ActionValueHead,
) -> ActionValueNetwork:
    """Action values of a convolutional torso; the images were checked by `check_images`."""
    encoder = _encoder(kind, normalize, layers)
    torso = torso_of(kind, encoder, layers, features)(encoder.vector_size)
    return ActionValueNetwork(kind, encoder, torso, head, memory=memory_of(settings.recurrent, features))


def build_convolutional_actor(
    kind: Kind,
    normalize: NormalizeSpec,
    layers: Sequence[Convolution],
    features: int,
    settings: NetworkSettings,
    head: ActorHead,
) -> TorsoActor:
    """What acts in the contract `actor_and_critics`; the images were checked by `check_images`."""
    encoder = _encoder(kind, normalize, layers)
    return TorsoActor(kind, encoder, torso_of(kind, encoder, layers, features), head, settings.initial_log_std)


def _encoder(kind: Kind, normalize: NormalizeSpec, layers: Sequence[Convolution]) -> ObservationEncoder:
    """What turns observations into images for the first layer, and a vector."""
    return ObservationEncoder(kind.observations, images=True, normalize=normalize, first=layers[0])


def torso_of(kind: Kind, encoder: ObservationEncoder, layers: Sequence[Convolution], features: int) -> TorsoOf:
    """Makes convolutional torsos for the encoder's images and a vector of any size."""
    height, width = next(spec.shape[1:] for spec in kind.observations.values() if is_image(spec))
    return lambda inputs: CnnTorso(encoder.image_scales, height, width, inputs, layers, features)
