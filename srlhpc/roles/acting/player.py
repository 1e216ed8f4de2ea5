"""One policy that plays its agents of all environments of a group.

Letters: E environments, A agents of the policy in one environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from srlhpc.data.blocks import OUTPUT
from srlhpc.environment import Array, FloatArray, KindStep
from srlhpc.policies.held_weights import hold_weights
from srlhpc.policies.policy import Acted, Policy, State
from srlhpc.specs.contracts import EXPERT


@dataclass(frozen=True)
class Reply:
    """What a policy did, as a policy server replies it."""

    fields: Mapping[str, Array]
    """`actions`, `log_probs` and `out.NAME` (data/blocks.py), `[E, A, ...]`."""


class Player:
    """One policy that plays its agents of a group, with the most probable actions unless it draws them.

    Of a rule that says how acting explores, and where actions are drawn, the generator is seeded anew for each round.

    Attributes:
        explores: whether the rule says how it acts, so that drawing actions would change nothing.
    """

    def __init__(
        self,
        policy: Policy,
        kind: str,
        agents: Sequence[int],
        num_environments: int,
        autocast: torch.dtype | None = None,
        exploration: Mapping[str, float | FloatArray] = MappingProxyType({}),
        *,
        draws: bool = False,
    ) -> None:
        """`exploration` is what the rule says of it, one number for all rows or `[E x A]`, and `draws` whether actions
        are drawn where it says nothing."""
        self.kind = kind
        self.policy = policy
        self._agents = list(agents)
        self._shape = (num_environments, len(self._agents))
        self._autocast = autocast
        if autocast is not None:
            hold_weights(policy, autocast)
        rows = num_environments * len(self._agents)
        self._state = policy.initial_state(rows)
        self._exploration = {
            name: torch.from_numpy(np.full(rows, value, np.float32))
            for name, value in exploration.items()
            # An expert acts for nobody here.
            if name != EXPERT
        }
        self.explores = bool(self._exploration)
        self._generator = torch.Generator() if self.explores or draws else None
        self._acted: Acted | None = None

    def seed(self, seed: int) -> None:
        """Begins a round: what it draws follows from the seed."""
        if self._generator is not None:
            self._generator.manual_seed(seed)

    def act(self, step: KindStep, actions: Array) -> None:
        """Writes actions for its agents into the kind's action array."""
        rows = self._shape[0] * self._shape[1]

        def flat(array: Array) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array[:, self._agents])).reshape(rows, *array.shape[2:])

        observations = {key: flat(values) for key, values in step.observations.items()}
        masks = None if step.action_masks is None else flat(step.action_masks)
        with (
            torch.inference_mode(),
            torch.autocast("cpu", dtype=self._autocast or torch.bfloat16, enabled=self._autocast is not None),
        ):
            acted = self.policy.act(
                observations,
                self._state,
                flat(step.first),
                action_masks=masks,
                generator=self._generator,
                exploration=self._exploration,
            )
        self._acted = acted
        self._state = acted.state if step.waits is None else self._kept(acted.state, flat(step.asked))
        actions[:, self._agents] = self._by_agent(acted.actions)

    def _kept(self, state: State, asked: Tensor) -> dict[str, Tensor]:
        """The state, as it was where an agent waits."""
        return {
            name: torch.where(asked.view(-1, *[1] * (rows.ndim - 1)), rows, self._state[name])
            for name, rows in state.items()
        }

    @property
    def reply(self) -> Reply:
        """What it did last."""
        assert self._acted is not None, "it has acted"
        outputs = {OUTPUT + name: tensor for name, tensor in self._acted.outputs.items()}
        acted = {"actions": self._acted.actions, "log_probs": self._acted.log_probs, **outputs}
        return Reply({name: self._by_agent(tensor) for name, tensor in acted.items()})

    def _by_agent(self, tensor: Tensor) -> Array:
        """Rows as `[E, A, ...]`."""
        array: Array = tensor.numpy()
        return array.reshape(*self._shape, *array.shape[1:])
