"""Network `mlp`: fully connected layers on all observations, flattened and concatenated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import PositiveInt, model_validator

from srlhpc.environment import Kind
from srlhpc.specs.action_values import ActionValueHead
from srlhpc.specs.actor_heads import ActorHead
from srlhpc.specs.contracts import Offer, action_values, actor_and_critics, phasic_actor_critic
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.policy import NormalizeSpec

if TYPE_CHECKING:
    from srlhpc.policies.actor_and_critics import TorsoActor, TorsoOf
    from srlhpc.policies.contracts import ActionValuePolicy, ActorAndCritics, ActorCriticPolicy


class Settings(NetworkSettings):
    """Fully connected layers."""

    not_in_checkpoints: ClassVar[tuple[str, ...]] = ("initial_log_std", "activation")

    hidden: tuple[PositiveInt, ...] = (64, 64)
    """Units of each layer."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Nonlinearity after each layer."""
    shared: bool | None = None
    """Whether policy and value of an actor-critic use the same layers; null: shared with memory, separate without."""

    @model_validator(mode="after")
    def _check_shared(self) -> Self:
        if self.shared is False and self.recurrent is not None:
            raise ValueError(
                "shared is false, but with memory (recurrent) policy and value use the same layers; "
                "set shared to null or true, or recurrent to null"
            )
        return self

    def offers(self, kind: Kind) -> Mapping[str, Offer]:
        return {
            **super().offers(kind),
            **phasic_actor_critic(),
            **actor_and_critics(kind, has_memory=self.recurrent is not None),
            **action_values(kind),
        }


def build(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> ActorCriticPolicy:
    """The policy, initialised from torch's default generator."""
    from srlhpc.policies.actor_critic import ActorCritic
    from srlhpc.policies.layers.observations import ObservationEncoder
    from srlhpc.policies.layers.recurrent import build_memory
    from srlhpc.policies.layers.torsos import MlpTorso

    encoder = ObservationEncoder(kind.observations, images=False, normalize=normalize)
    torso = MlpTorso(encoder.vector_size, settings.hidden, settings.activation)
    memory, value_torso = None, None
    if settings.recurrent is not None:
        memory = build_memory(settings.recurrent.kind, torso.features, settings.recurrent.size)
    elif not settings.shared:
        value_torso = MlpTorso(encoder.vector_size, settings.hidden, settings.activation)
    return ActorCritic(
        kind,
        encoder,
        torso,
        value_torso=value_torso,
        memory=memory,
        normalize=normalize,
        initial_log_std=settings.initial_log_std,
    )


def build_actor(settings: Settings, kind: Kind, normalize: NormalizeSpec, head: ActorHead) -> TorsoActor:
    """What acts in the contract `actor_and_critics`, initialised from torch's default generator."""
    from srlhpc.policies.actor_and_critics import TorsoActor
    from srlhpc.policies.layers.observations import ObservationEncoder

    encoder = ObservationEncoder(kind.observations, images=False, normalize=normalize)
    return TorsoActor(kind, encoder, _torso_of(settings), head, settings.initial_log_std)


def build_critics(settings: Settings, actor: TorsoActor, normalize: NormalizeSpec) -> ActorAndCritics[Any]:  # noqa: ARG001
    """What is trained in the contract `actor_and_critics`."""
    from srlhpc.policies.actor_and_critics import with_critics

    return with_critics(actor, _torso_of(settings))


def _torso_of(settings: Settings) -> TorsoOf:
    from srlhpc.policies.layers.torsos import MlpTorso

    return lambda inputs: MlpTorso(inputs, settings.hidden, settings.activation)


def build_action_values(
    settings: Settings, kind: Kind, normalize: NormalizeSpec, head: ActionValueHead
) -> ActionValuePolicy:
    """The policy as values of actions, initialised from torch's default generator."""
    from srlhpc.policies.action_values import ActionValueNetwork
    from srlhpc.policies.layers.observations import ObservationEncoder
    from srlhpc.policies.layers.recurrent import memory_of
    from srlhpc.policies.layers.torsos import MlpTorso

    encoder = ObservationEncoder(kind.observations, images=False, normalize=normalize)
    torso = MlpTorso(encoder.vector_size, settings.hidden, settings.activation)
    return ActionValueNetwork(kind, encoder, torso, head, memory=memory_of(settings.recurrent, torso.features))
