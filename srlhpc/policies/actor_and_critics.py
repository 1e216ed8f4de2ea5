"""Actor and critics of continuous actions that all shipped networks share: each has a torso of its own.

Letters: N rows, D dimensions of an action, C critics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from srlhpc.environment import Continuous, Kind
from srlhpc.policies.contracts import ActorAndCritics, ContinuousActor, Critics
from srlhpc.policies.layers.actor_heads import actor_layer
from srlhpc.policies.layers.heads import ValueHead
from srlhpc.policies.layers.initialization import uniform
from srlhpc.policies.layers.observations import Encoded, ObservationEncoder
from srlhpc.policies.layers.torsos import Torso
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, State
from srlhpc.specs.actor_heads import ActorHead

_CRITICS = 2

TorsoOf = Callable[[int], Torso]
"""Makes a torso for vectors of so many numbers, beside the images if there are any."""


class TorsoActor(ContinuousActor[Any]):
    """A torso, then the head that the rule wants.

    Args:
        kind: the agents it serves; their actions are continuous.
        encoder: from raw observations to the torso's input.
        torso_of: makes the torso.
        head: what the rule wants the head to look like.
        initial_log_std: logarithm of the standard deviation to start with, if the head has one.
    """

    def __init__(
        self, kind: Kind, encoder: ObservationEncoder, torso_of: TorsoOf, head: ActorHead, initial_log_std: float
    ) -> None:
        super().__init__()
        assert isinstance(kind.actions, Continuous)
        self.kind = kind
        self.encoder = encoder
        self.torso = uniform(torso_of(encoder.vector_size))
        self.head = actor_layer(self.torso.features, kind.actions.size, head, initial_log_std)

    def initial_state(self, rows: int) -> dict[str, Tensor]:  # noqa: ARG002
        return {}

    def encode(self, observations: Mapping[str, Tensor]) -> Encoded:
        encoded: Encoded = self.encoder(observations)
        return encoded

    def distribution(self, encoded: Encoded) -> Any:
        return self.head.distribution(self.torso(encoded))

    @torch.no_grad()
    def act(
        self,
        observations: Mapping[str, Tensor],
        state: State,  # noqa: ARG002
        first: Tensor,  # noqa: ARG002
        *,
        action_masks: Tensor | None,  # noqa: ARG002
        generator: torch.Generator | None,
        exploration: Exploration = NO_EXPLORATION,
    ) -> Acted:
        distribution = self.distribution(self.encode(observations))
        if generator is None:
            return Acted(*self.head.mode(distribution), {}, {})
        drawn = self.head.draw(distribution, generator, exploration)
        if "uniform" not in exploration:
            return Acted(*drawn, {}, {})
        anything = torch.empty_like(drawn.actions).uniform_(-1.0, 1.0, generator=generator)
        uniform = exploration["uniform"].bool()
        actions = torch.where(uniform.unsqueeze(-1), anything, drawn.actions)
        # The density of the uniform distribution on [-1, 1]^D is 2^-D.
        log_probs = drawn.log_probs.masked_fill(uniform, -math.log(2.0) * anything.shape[-1])
        return Acted(actions, log_probs, {}, {})


class TorsoCritics(Critics):
    """Critics that take observation and action together into a torso of their own (the action joins the vector).

    Args:
        actor: whose encoder they share.
        torso_of: makes their torsos, of the same form as the actor's.
    """

    def __init__(self, actor: TorsoActor, torso_of: TorsoOf) -> None:
        super().__init__()
        assert isinstance(actor.kind.actions, Continuous)
        inputs = actor.encoder.vector_size + actor.kind.actions.size
        torsos = [torso_of(inputs) for _ in range(_CRITICS)]
        self.torsos = nn.ModuleList(torsos)
        self.heads = nn.ModuleList(ValueHead(torso.features) for torso in torsos)
        uniform(self)

    def forward(self, encoded: Encoded, actions: Tensor) -> Tensor:
        seen = _together(encoded, actions)
        return torch.stack([head(torso(seen)) for torso, head in zip(self.torsos, self.heads, strict=True)])

    def first(self, encoded: Encoded, actions: Tensor) -> Tensor:
        value: Tensor = self.heads[0](self.torsos[0](_together(encoded, actions)))
        return value


def _together(encoded: Encoded, actions: Tensor) -> Encoded:
    vector = actions if encoded.vector is None else torch.cat([encoded.vector, actions], dim=1)
    return encoded._replace(vector=vector)


def with_critics(actor: TorsoActor, torso_of: TorsoOf) -> ActorAndCritics[Any]:
    """What trainers build around an actor."""
    return ActorAndCritics(actor, TorsoCritics(actor, torso_of))
