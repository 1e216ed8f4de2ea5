"""The policy of action values that all shipped networks share: torso, optional memory, and a head.

Letters: N rows, T records of a fragment, B columns, K actions.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from srlhpc.environment import Discrete, Kind
from srlhpc.policies.contracts import ActionValuePolicy, ActionValues
from srlhpc.policies.layers.features import normed, scan, step
from srlhpc.policies.layers.heads import ActionValueLayers
from srlhpc.policies.layers.initialization import uniform
from srlhpc.policies.layers.observations import Encoder
from srlhpc.policies.layers.recurrent import Memory
from srlhpc.policies.layers.torsos import Torso
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, State
from srlhpc.rl.action_choice import epsilon_greedy, greatest
from srlhpc.specs.action_values import ActionValueHead


class ActionValueNetwork(ActionValuePolicy):
    """The values of discrete actions, of which acting takes the greatest.

    Args:
        kind: the agents it serves; their actions are `Discrete`.
        encoder: from raw observations to the torso's input.
        torso: features of the head or the memory.
        head: what the rule wants the head to look like.
        memory: between torso and head, or None.
        norm: of the features before the head, or None.
    """

    def __init__(
        self,
        kind: Kind,
        encoder: Encoder,
        torso: Torso,
        head: ActionValueHead,
        *,
        memory: Memory | None = None,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        assert isinstance(kind.actions, Discrete)
        self.kind = kind
        self.encoder = encoder
        self.torso, self.memory, self.norm = torso, memory, norm
        self._choices = kind.actions.choices
        self.head = ActionValueLayers(torso.features if memory is None else memory.size, self._choices, head)
        uniform(self)

    @property
    def support(self) -> Tensor | None:
        return self.head.support

    @property
    def stackable(self) -> bool:
        return self.torso.stackable and self.memory is None and self.norm is None

    def initial_state(self, rows: int) -> dict[str, Tensor]:
        return self.memory.initial_state(rows) if self.memory is not None else {}

    @torch.no_grad()
    def act(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
        generator: torch.Generator | None,
        exploration: Exploration = NO_EXPLORATION,
    ) -> Acted:
        """Takes the action of the greatest value, or any with the probability `exploration["epsilon"]`."""
        features, new_state = step(self.torso(self.encoder(observations)), self.memory, state, first)
        means: Tensor = self.head(normed(self.norm, features), action_masks).means
        best = greatest(means, action_masks)
        if generator is None:
            actions, log_probs = best, means.new_zeros(len(best))
        else:
            epsilons = exploration["epsilon"]
            actions, log_probs = epsilon_greedy(best, action_masks, epsilons, self._choices, generator)
        q_taken, q_max = means.gather(-1, torch.stack([actions, best], dim=-1)).unbind(-1)
        return Acted(actions, log_probs, {"q_taken": q_taken, "q_max": q_max}, new_state)

    def action_values(
        self,
        observations: Mapping[str, Tensor],
        state: State,
        first: Tensor,
        *,
        action_masks: Tensor | None,
    ) -> ActionValues:
        features = scan(self.torso(self.encoder(observations)), self.memory, state, first)
        values: ActionValues = self.head(normed(self.norm, features), action_masks)
        return values

    @torch.no_grad()
    def warm_up(self, observations: Mapping[str, Tensor], state: State, first: Tensor) -> dict[str, Tensor]:
        if self.memory is None or len(first) == 0:
            return dict(state)
        features = self.torso(self.encoder(observations)).reshape(*first.shape, -1)
        after = dict(state)
        for t in range(len(first)):
            after = self.memory.step(features[t], after, first[t])
        return after
