"""How the image networks put a policy together."""

from __future__ import annotations

from collections.abc import Sequence

from srlhpc.environment import Kind
from srlhpc.policies.actor_critic import ActorCritic
from srlhpc.policies.layers.images import Convolution, is_image
from srlhpc.policies.layers.observations import ObservationEncoder
from srlhpc.policies.layers.recurrent import build_memory
from srlhpc.policies.layers.torsos import CnnTorso
from srlhpc.specs.experiment import NormalizeSpec
from srlhpc.specs.named_modules import NetworkSettings


def build_convolutional(
    kind: Kind,
    normalize: NormalizeSpec,
    layers: Sequence[Convolution],
    features: int,
    settings: NetworkSettings,
) -> ActorCritic:
    """An actor-critic with one convolutional torso for both heads; the images were checked by `check_images`."""
    encoder = ObservationEncoder(kind.observations, images=True, normalize=normalize)
    height, width = next(spec.shape[1:] for spec in kind.observations.values() if is_image(spec))
    torso = CnnTorso(encoder.image_scales, height, width, encoder.vector_size, layers, features)
    recurrent = settings.recurrent
    memory = build_memory(recurrent.kind, features, recurrent.size) if recurrent is not None else None
    return ActorCritic(
        kind,
        encoder,
        torso,
        memory=memory,
        normalize=normalize,
        initial_log_std=settings.initial_log_std,
    )
