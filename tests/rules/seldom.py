"""PPO whose parameters act only after every third update."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from srlhpc.algorithms import ppo

if TYPE_CHECKING:
    from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, Update
    from srlhpc.policies.contracts import ActorCriticPolicy


class Settings(ppo.Settings):
    pass


def build(settings: Settings, policy: ActorCriticPolicy, context: Context) -> Algorithm:
    from srlhpc.algorithms.ppo.update import Ppo

    class Seldom(Ppo):
        def update(self, batch: Batch) -> Generator[None, None, Update]:
            update = yield from super().update(batch)
            return replace(update, publishes=(batch.version + 1) % 3 == 0)

    return Seldom(settings, policy, context)
