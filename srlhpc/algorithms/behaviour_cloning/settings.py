"""What a user may set of behaviour cloning."""

from __future__ import annotations

from srlhpc.algorithms.imitation.settings import ELSEWHERE, ImitationSettings
from srlhpc.environment import Kind
from srlhpc.specs.contracts import ACTOR_CRITIC, Needs


class Settings(ImitationSettings):
    """Maximum likelihood of the actions of recorded episodes (`episodes` of the policy)."""

    elsewhere = ELSEWHERE

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(ACTOR_CRITIC, normalizes=("observations",), data="episodes")
