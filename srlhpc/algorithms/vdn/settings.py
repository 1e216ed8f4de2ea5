"""What a user may set of value decomposition.

Unless a field names another source, defaults are those of PyMARL (Samvelyan et al. 2019, arXiv:1902.04043), but for
Adam in place of RMSProp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt, field_validator

from srlhpc.environment import Continuous, Discrete, FloatArray, Kind
from srlhpc.errors import UserError
from srlhpc.specs.action_values import ActionValueHead
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.contracts import ACTION_VALUES, Needs
from srlhpc.specs.exploration import Epsilon, RandomActions
from srlhpc.specs.named_modules import AlgorithmSettings, NetworkSettings
from srlhpc.specs.schedule import LinearSchedule, Schedule, check_not_negative

Fraction = Annotated[float, Ge(0.0), Le(1.0)]


class Settings(AlgorithmSettings):
    """Q-learning of the sum of the agents' values, from replay: agents of one team share a reward."""

    elsewhere = {
        "lr": "learning_rate",
        **dict.fromkeys(("epsilon", "epsilon_start"), "exploration: {kind: epsilon, value: ...}"),
        **dict.fromkeys(("epsilon_anneal_time", "epsilon_finish"), "exploration: {kind: epsilon, value: {start: ...}}"),
        **dict.fromkeys(("target_update_interval", "target_update_interval_or_tau"), "target_every_updates"),
        "tau": "polyak",
        "double_q": "double",
        "grad_norm_clip": "max_gradient_norm",
        "batch_size": "batch.fragments of the policy",
        "buffer_size": "replay.capacity of the policy",
    }

    learning_rate: Schedule = 5e-4
    """Adam's step size."""
    gamma: Fraction = 0.99
    """Discount of one step."""
    team_reward: Literal["sum", "mean"] = "sum"
    """The team's reward: the sum of its agents' rewards, or their mean, for environments that give all of them to each.
    Who is not in the game brings nothing and is not counted."""
    n_steps: PositiveInt = 1
    """Rewards of the team that a target adds up before it takes the value of what follows."""
    double: bool = True
    """Whether the network chooses the actions of which the target network tells the values (van Hasselt et al. 2016,
    arXiv:1509.06461); otherwise the target network chooses too."""
    dueling: bool = False
    """Whether the head adds a value and advantages (Wang et al. 2016, arXiv:1511.06581)."""
    head_units: PositiveInt | None = None
    """Units of a hidden layer of the head, in a dueling one of each of its streams; null: none."""
    rescale: bool = False
    """Learn the team's value on the scale h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x (Pohlen et al. 2018,
    arXiv:1805.11593), for large rewards."""
    loss: Literal["squared", "huber"] = "squared"
    """Loss of an error d of the team's value. squared: d^2 / 2. huber: the same, linear beyond 1."""
    target_every_updates: PositiveInt = 200
    """Updates between two moves of the target network towards the network."""
    polyak: Annotated[float, Gt(0.0), Le(1.0)] = 1.0
    """Share of the distance that it moves then; 1 copies."""
    max_gradient_norm: PositiveFloat | None = 10.0
    """Gradients of a larger norm are scaled down to it; null: never."""
    adam_epsilon: PositiveFloat = 1e-5
    """Adam's epsilon."""
    priority_max_share: Fraction = 0.9
    """Share of the greatest error of a window in its priority; the others' mean has the rest (R2D2, section 2.3)."""
    exploration: RandomActions = Epsilon(value=LinearSchedule(start=1.0, end=0.05, steps=50_000))
    """How acting draws some actions at random: {kind: epsilon} or {kind: ladder}, over agents."""

    _check_not_negative = field_validator("learning_rate")(check_not_negative)

    def needs(self, kind: Kind) -> Needs:
        if not isinstance(kind.actions, Discrete):
            raise UserError(_refused(self.kind, kind))
        return Needs(
            ACTION_VALUES,
            head=ActionValueHead(dueling=self.dueling, units=self.head_units),
            gives_feedback=True,
            joint=True,
            data="replay",
            # A batch of 32 episodes after every episode.
            samples_per_insert=32.0,
            after=self.n_steps - 1,
        )

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:
        return {"epsilon": self.exploration.probabilities(columns, total, steps)}

    def explore_in_evaluation(self) -> Mapping[str, float]:
        return {"epsilon": self.exploration.evaluation}

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:  # noqa: ARG002
        if getattr(network, "shared", None) is False:
            raise UserError(
                f"network.shared is false, but algorithm {self.kind} trains one head on one torso; set network.shared "
                "to true"
            )


def _refused(rule: str, kind: Kind) -> str:
    what = "continuous actions" if isinstance(kind.actions, Continuous) else "several choices at once"
    return (
        f"algorithm {rule} compares the values of single choices, but agents of kind '{kind.name}' have {what}; set "
        "algorithm.kind to ppo, or let the environment number their combinations as one choice"
    )
