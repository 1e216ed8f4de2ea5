"""The torso of entity networks: embeddings, attention, mean.

Shape letters: N rows, V own vector, C channels and P places of a ring, U = V and all ring features, K entities and F
features of a set, W width, S all entities of all sets.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from srlhpc.environment import Continuous, MultiDiscrete
from srlhpc.policies.actor_critic import ActorCritic
from srlhpc.policies.entities.encoder import EncodedEntities, EntityShapes
from srlhpc.policies.entities.settings import Settings
from srlhpc.policies.layers.attention import MaskedSelfAttention, masked_mean
from srlhpc.policies.layers.torsos import Torso

_POLICY_NORM = 0.01


class CircularConvolution(nn.Module):
    """A convolution over a ring of places, whose last is the neighbour of the first, followed by a ReLU.

    Args:
        channels: C of input and output.
        kernel: places that an output sees; odd.
    """

    def __init__(self, channels: tuple[int, int], kernel: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(*channels, kernel)
        nn.init.xavier_uniform_(self.convolution.weight)
        self._reach = kernel // 2

    def forward(self, x_NCP: Tensor) -> Tensor:
        """Outputs `[N, C, P]`."""
        padded = functional.pad(x_NCP, (self._reach, self._reach), mode="circular")
        return torch.relu_(self.convolution(padded))


class EntityTorso(Torso):
    """The agent's embedding beside the mean of what it attends to.

    Own vector and ring features make u. The agent is embedded as relu(A u), an entity e as relu(B [u, e]) with B of
    its set; both are computed for all sets at once, the part of u once for all entities.

    Args:
        shapes: of the observations.
        settings: sizes.
        masks: which entities are seen.
    """

    def __init__(self, shapes: EntityShapes, settings: Settings, *, masks: Literal["visible", "exists"]) -> None:
        super().__init__()
        self._masks = masks
        self._width = width = settings.width
        rings = list(zip(shapes.rings, settings.rings.values(), strict=True))
        self.rings = nn.ModuleList(
            CircularConvolution((channels, ring.channels), ring.kernel) for (channels, _), ring in rings
        )
        seen = shapes.own + sum(ring.channels * places for (_, places), ring in rings)
        self.own = nn.Linear(seen, width * (1 + len(shapes.features)))
        self.entities = nn.ModuleList(nn.Linear(features, width, bias=False) for features in shapes.features)
        self.attention = MaskedSelfAttention(width, settings.heads)
        self.norm_in = nn.LayerNorm(2 * width)
        self.linear = nn.Linear(2 * width, settings.features)
        self.norm_out = nn.LayerNorm(settings.features)
        self.features = settings.features
        self._initialize(seen, shapes.features)

    @torch.no_grad()
    def _initialize(self, seen: int, features: list[int]) -> None:
        """Xavier's uniform weights (Glorot and Bengio 2010, eq. 16), those of u and e drawn as of one layer."""
        width = self._width
        for place, size in enumerate([0, *features]):
            rows = slice(place * width, (place + 1) * width)
            bound = math.sqrt(6 / (seen + size + width))
            self.own.weight[rows].uniform_(-bound, bound)
            self.own.bias[rows].uniform_(-1, 1).div_(math.sqrt(seen + size))
            if place:
                layer = self.entities[place - 1]
                assert isinstance(layer, nn.Linear)
                layer.weight.uniform_(-bound, bound)
        nn.init.xavier_uniform_(self.linear.weight)

    def forward(self, encoded: EncodedEntities) -> Tensor:
        rings = [ring(x_NCP).flatten(1) for ring, x_NCP in zip(self.rings, encoded.rings, strict=True)]
        u_NU = torch.cat([encoded.own, *rings], dim=1) if rings else encoded.own
        own_NW, *shared = torch.split(self.own(u_NU).unsqueeze(1), self._width, dim=2)
        embedded = [
            layer(x_NKF) + shared_NW
            for layer, x_NKF, shared_NW in zip(self.entities, encoded.sets, shared, strict=True)
        ]
        x_NSW = torch.relu_(torch.cat([own_NW, *embedded], dim=1))
        mask_NS = encoded.visible if self._masks == "visible" else encoded.exists
        mean_NW = masked_mean(self.attention(x_NSW, mask_NS), mask_NS)
        both = self.norm_in(torch.cat([x_NSW[:, 0], mean_NW], dim=1))
        features: Tensor = self.norm_out(torch.relu_(self.linear(both)))
        return features


@torch.no_grad()
def initialize_heads(policy: ActorCritic) -> None:
    """Small Gaussian weights of the policy's head, equally small for every choice to make; torch's own for the value.

    Within one part of an action, all weights of one feature together have the norm 0.01.
    """
    space, linear = policy.kind.actions, policy.policy_head.linear
    match space:
        case MultiDiscrete(choices=choices):
            sizes = list(choices)
        case Continuous(size=size):
            sizes = [size]
        case _:
            sizes = [space.mask_size]
    for part in torch.split(linear.weight, sizes):
        part.normal_()
        part.mul_(_POLICY_NORM / part.norm(dim=0, keepdim=True))
    linear.bias.uniform_(-1, 1).div_(math.sqrt(linear.in_features))
    policy.value_head.linear.reset_parameters()
