"""A network whose critic does not act: only the actor travels to policy servers and evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import PositiveInt

from srlhpc.environment import Kind
from srlhpc.specs.contracts import Offer
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.policy import NormalizeSpec

if TYPE_CHECKING:
    from tests.rules.critic_beside_modules import Actor, ActorBesideCritic

CRITIC_BESIDE = "critic_beside"
"""A distribution over actions; values of the same records from a critic that only trainers have."""


class Settings(NetworkSettings):
    hidden: PositiveInt = 16
    """Units of the one layer of each."""

    def offers(self, kind: Kind) -> Mapping[str, Offer]:  # noqa: ARG002
        return {CRITIC_BESIDE: Offer(build="build_actor", build_trained="build_critic")}


def build(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> Actor:
    return build_actor(settings, kind, normalize)


def build_actor(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> Actor:
    from tests.rules.critic_beside_modules import Actor

    return Actor(kind, settings.hidden, normalize)


def build_critic(settings: Settings, policy: Actor, normalize: NormalizeSpec) -> ActorBesideCritic:  # noqa: ARG001
    from tests.rules.critic_beside_modules import ActorBesideCritic

    return ActorBesideCritic(policy, settings.hidden)
