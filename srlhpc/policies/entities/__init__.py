"""Network `entities`: sets of entities with masks, attended to from the agent's own view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.environment import Kind
from srlhpc.policies.entities.settings import Settings
from srlhpc.specs.experiment import NormalizeSpec

if TYPE_CHECKING:
    from srlhpc.policies.contracts import ActorCriticPolicy


__all__ = ["Settings", "build"]


def build(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> ActorCriticPolicy:
    """The policy, initialised from torch's default generator."""
    from torch import nn

    from srlhpc.policies.actor_critic import ActorCritic
    from srlhpc.policies.entities.encoder import EntityEncoder
    from srlhpc.policies.entities.torso import EntityTorso, initialize_heads
    from srlhpc.policies.layers.recurrent import Memory, build_memory

    settings.check(kind)
    encoder = EntityEncoder(kind.observations, settings, normalize)
    recurrent = settings.recurrent

    def memory() -> Memory | None:
        return build_memory(recurrent.kind, settings.features, recurrent.size) if recurrent is not None else None

    def norm() -> nn.Module | None:
        return nn.LayerNorm(recurrent.size) if recurrent is not None else None

    policy = ActorCritic(
        kind,
        encoder,
        EntityTorso(encoder.shapes, settings, masks="visible"),
        value_torso=None if settings.shared else EntityTorso(encoder.shapes, settings, masks="exists"),
        memory=memory(),
        value_memory=None if settings.shared else memory(),
        norm=norm(),
        value_norm=None if settings.shared else norm(),
        normalize=normalize,
        initial_log_std=settings.initial_log_std,
    )
    initialize_heads(policy)
    return policy
