"""Actor and critics of continuous actions that all shipped networks share: each has a torso of its own.

Letters: N rows, D dimensions of an action, C critics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from srlhpc.environment import Continuous, Kind
from srlhpc.policies.contracts import ActorAndCritics, Critics, SquashedActor
from srlhpc.policies.layers.heads import Float32Linear, ValueHead
from srlhpc.policies.layers.initialization import orthogonal, uniform
from srlhpc.policies.layers.observations import Encoded, ObservationEncoder
from srlhpc.policies.layers.torsos import Torso
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, State
from srlhpc.rl.squashed_gaussian import SquashedGaussian, unsquashed_log_std
from srlhpc.specs.contracts import LOG_STDS

_POLICY_GAIN = 0.01
_CRITICS = 2

TorsoOf = Callable[[int], Torso]
"""Makes a torso for vectors of so many numbers, beside the images if there are any."""


class TorsoActor(SquashedActor):
    """A torso, then means and standard deviations of a squashed Gaussian.

    Args:
        kind: the agents it serves; their actions are continuous.
        encoder: from raw observations to the torso's input.
        torso_of: makes the torso.
        initial_log_std: logarithm of the standard deviation to start with, inside of `LOG_STDS`.
    """

    def __init__(self, kind: Kind, encoder: ObservationEncoder, torso_of: TorsoOf, initial_log_std: float) -> None:
        super().__init__()
        assert isinstance(kind.actions, Continuous)
        self.kind = kind
        self.encoder = encoder
        self.torso = uniform(torso_of(encoder.vector_size))
        self.head = orthogonal(Float32Linear(self.torso.features, 2 * kind.actions.size), _POLICY_GAIN)
        with torch.no_grad():
            self.head.bias[kind.actions.size :] = unsquashed_log_std(initial_log_std, LOG_STDS)

    def initial_state(self, rows: int) -> dict[str, Tensor]:  # noqa: ARG002
        return {}

    def encode(self, observations: Mapping[str, Tensor]) -> Encoded:
        encoded: Encoded = self.encoder(observations)
        return encoded

    def distribution(self, encoded: Encoded) -> SquashedGaussian:
        means, raw = self.head(self.torso(encoded)).chunk(2, dim=-1)
        return SquashedGaussian(means, raw, LOG_STDS)

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
        noise = torch.zeros_like(distribution.means)
        if generator is None:
            return Acted(*distribution.draw(noise), {}, {})
        noise.normal_(generator=generator)
        if "noise" in exploration:
            noise *= exploration["noise"].unsqueeze(-1)
        drawn = distribution.draw(noise)
        if "uniform" not in exploration:
            return Acted(*drawn, {}, {})
        anything = torch.empty_like(noise).uniform_(-1.0, 1.0, generator=generator)
        uniform = exploration["uniform"].bool()
        actions = torch.where(uniform.unsqueeze(-1), anything, drawn.actions)
        # The density of the uniform distribution on [-1, 1]^D is 2^-D.
        log_probs = drawn.log_probs.masked_fill(uniform, -math.log(2.0) * noise.shape[-1])
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
        vector = actions if encoded.vector is None else torch.cat([encoded.vector, actions], dim=1)
        seen = encoded._replace(vector=vector)
        return torch.stack([head(torso(seen)) for torso, head in zip(self.torsos, self.heads, strict=True)])


def with_critics(actor: TorsoActor, torso_of: TorsoOf) -> ActorAndCritics:
    """What trainers build around an actor."""
    return ActorAndCritics(actor, TorsoCritics(actor, torso_of))
