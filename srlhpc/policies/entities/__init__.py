"""Network `entities`: sets of entities with masks, attended to from the agent's own view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srlhpc.environment import Kind
from srlhpc.policies.entities.settings import Settings
from srlhpc.specs.action_values import ActionValueHead
from srlhpc.specs.policy import NormalizeSpec

if TYPE_CHECKING:
    from srlhpc.policies.contracts import ActionValuePolicy, ActorCriticPolicy


__all__ = ["Settings", "build", "build_action_values"]


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


def build_action_values(
    settings: Settings, kind: Kind, normalize: NormalizeSpec, head: ActionValueHead
) -> ActionValuePolicy:
    """The policy as values of actions, of what is visible; initialised from torch's default generator."""
    from torch import nn

    from srlhpc.policies.action_values import ActionValueNetwork
    from srlhpc.policies.entities.encoder import EntityEncoder
    from srlhpc.policies.entities.torso import EntityTorso
    from srlhpc.policies.layers.recurrent import memory_of

    settings.check(kind)
    encoder = EntityEncoder(kind.observations, settings, normalize)
    memory = memory_of(settings.recurrent, settings.features)
    norm = None if memory is None else nn.LayerNorm(memory.size)
    torso = EntityTorso(encoder.shapes, settings, masks="visible")
    return ActionValueNetwork(kind, encoder, torso, head, memory=memory, norm=norm)
