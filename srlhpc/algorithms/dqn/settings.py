"""What a user may set of DQN.

Unless a field names another source, defaults are those of Ape-X (Horgan et al. 2018, arXiv:1803.00933, appendix C), but
for Adam in place of its optimiser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt, field_validator, model_validator

from srlhpc.environment import Continuous, Discrete, FloatArray, Kind
from srlhpc.errors import UserError
from srlhpc.specs.action_values import ActionValueHead, Atoms, ReturnDistribution
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.contracts import ACTION_VALUE_OUTPUTS, ACTION_VALUES, Needs
from srlhpc.specs.exploration import Ladder, RandomActions
from srlhpc.specs.named_modules import AlgorithmSettings, NetworkSettings
from srlhpc.specs.replay import PrioritizedDraw
from srlhpc.specs.schedule import Schedule, check_not_negative
from srlhpc.specs.spec import refusal

Fraction = Annotated[float, Ge(0.0), Le(1.0)]


class Settings(AlgorithmSettings):
    """Deep Q-learning from replay."""

    elsewhere = {
        "lr": "learning_rate",
        **dict.fromkeys(("epsilon", "eps", "epsilon_greedy"), "exploration: {kind: epsilon, value: ...}"),
        **dict.fromkeys(("exploration_fraction", "epsilon_decay"), "exploration: {kind: epsilon, value: {start: ...}}"),
        **dict.fromkeys(("target_update_interval", "target_network_frequency"), "target_every_updates"),
        "tau": "polyak",
        "batch_size": "batch.fragments of the policy",
        "buffer_size": "replay.capacity of the policy",
    }

    learning_rate: Schedule = 2.5e-4
    """Adam's step size. Default: Mnih et al. 2015; R2D2 (Kapturowski et al. 2019, table 2) has 1e-4."""
    gamma: Fraction = 0.99
    """Discount of one step."""
    n_steps: PositiveInt = 3
    """Rewards that a target adds up before it takes the value of what follows."""
    double: bool = True
    """Whether the network chooses the action of which the target network tells the value (van Hasselt et al. 2016,
    arXiv:1509.06461); otherwise the target network chooses too."""
    dueling: bool = True
    """Whether the head adds a value and advantages (Wang et al. 2016, arXiv:1511.06581)."""
    head_units: PositiveInt | None = None
    """Units of a hidden layer of the head, in a dueling one of each of its streams; null: none."""
    distribution: ReturnDistribution | None = None
    """What is learnt of the return of an action: {kind: quantile} (QR-DQN) or {kind: categorical} (C51); null: its
    mean."""
    rescale: bool = False
    """Learn values on the scale h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x instead of clipping rewards (R2D2)."""
    loss: Literal["huber", "squared"] = "huber"
    """Loss of an error d of the mean. squared: d^2 / 2 (R2D2). huber: the same, linear beyond 1 (Mnih et al. 2015). A
    distribution has the loss of its paper."""
    target_every_updates: PositiveInt = 250
    """Updates between two moves of the target network towards the network. Default: the 1,000 frames of MinAtar (Young
    and Tian 2019, arXiv:1903.03176) at an update for four of them. Ape-X and R2D2, which make millions of updates, have
    2500."""
    polyak: Annotated[float, Gt(0.0), Le(1.0)] = 1.0
    """Share of the distance that it moves then; 1 copies."""
    max_gradient_norm: PositiveFloat | None = 10.0
    """Gradients of a larger norm are scaled down to it; null: never. Default: the dueling paper."""
    adam_epsilon: PositiveFloat = 1.5e-4
    """Adam's epsilon. Default: Rainbow (Hessel et al. 2018, arXiv:1710.02298, table 1)."""
    priority_max_share: Fraction = 0.9
    """Share of the greatest error of a window in its priority; the others' mean has the rest (R2D2, section 2.3)."""
    exploration: RandomActions = Ladder()
    """How acting draws some actions at random: {kind: ladder} or {kind: epsilon}."""

    _check_not_negative = field_validator("learning_rate")(check_not_negative)

    @model_validator(mode="after")
    def _check_loss(self) -> Self:
        if self.distribution is not None and self.loss == "squared":
            raise refusal(
                f"is squared but distribution is {self.distribution.kind}, which has a loss of its own; leave loss "
                "out, or set distribution to null",
                "loss",
            )
        return self

    @property
    def head(self) -> ActionValueHead:
        """What the network's head looks like."""
        return ActionValueHead(dueling=self.dueling, units=self.head_units, distribution=self.distribution)

    def needs(self, kind: Kind) -> Needs:
        if not isinstance(kind.actions, Discrete):
            raise UserError(_refused(kind))
        # What acting tells are values of means, and a categorical loss is none of their errors.
        told = self.n_steps > 1 and not isinstance(self.distribution, Atoms)
        return Needs(
            ACTION_VALUES,
            ACTION_VALUE_OUTPUTS,
            self.head,
            gives_feedback=True,
            data="replay",
            draw=PrioritizedDraw(),
            # A batch of 32 every four steps (Mnih et al. 2015).
            samples_per_insert=8.0,
            after=self.n_steps - 1,
            first_priorities="srlhpc.algorithms.dqn.priorities:first_priorities" if told else None,
        )

    def explore(self, columns: NDArray[np.int64], total: int, steps: int) -> Mapping[str, FloatArray]:
        return {"epsilon": self.exploration.probabilities(columns, total, steps)}

    def explore_in_evaluation(self) -> Mapping[str, float]:
        return {"epsilon": self.exploration.evaluation}

    def check(self, batch: BatchSpec, network: NetworkSettings) -> None:  # noqa: ARG002
        if getattr(network, "shared", None) is False:
            raise UserError(
                "network.shared is false, but algorithm dqn trains one head on one torso; set network.shared to true"
            )


def _refused(kind: Kind) -> str:
    if isinstance(kind.actions, Continuous):
        what, remedy = "continuous actions", "set algorithm.kind to sac or ppo"
    else:
        what = "several choices at once"
        remedy = "set algorithm.kind to ppo, or let the environment number their combinations as one choice"
    return (
        f"algorithm dqn compares the values of single choices, but agents of kind '{kind.name}' have {what}; {remedy}"
    )
