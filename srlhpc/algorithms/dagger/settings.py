"""What a user may set of DAgger."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from srlhpc.algorithms.imitation.settings import ELSEWHERE, ImitationSettings
from srlhpc.environment import FloatArray, Kind
from srlhpc.specs.contracts import ACTOR_CRITIC, EXPERT, Needs
from srlhpc.specs.schedule import LinearSchedule, Schedule, check_probability, value_at


class Settings(ImitationSettings):
    """Dataset aggregation: what the learner meets is labelled by an expert and kept in replay, of all rounds together.

    Rounds are not counted: records come in and are learnt from all the time.
    """

    elsewhere = {**ELSEWHERE, **dict.fromkeys(("teacher", "expert_policy"), "expert"), "beta_schedule": "beta"}

    expert: str
    """Name of the policy that labels; it has `weights_from`, and nobody trains it."""
    beta: Schedule = LinearSchedule(start=1.0, end=0.0, steps=2000)
    """Probability that the expert's action is played instead of the learner's, drawn at every step. Ross et al. 2011
    let it fall from 1 (section 3.6)."""

    _check_probability = field_validator("beta")(check_probability)

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(
            ACTOR_CRITIC, expert=self.expert, normalizes=("observations",), data="replay", samples_per_insert=32.0
        )

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:  # noqa: ARG002
        return {EXPERT: np.full(len(columns), value_at(self.beta, steps), np.float32)}

    def explore_in_evaluation(self) -> Mapping[str, float]:
        return {EXPERT: 0.0}
