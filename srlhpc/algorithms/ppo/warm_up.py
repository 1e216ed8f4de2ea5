"""The part of a minibatch behind its burn-in."""

from __future__ import annotations

from typing import TypeVar

from srlhpc.algorithms.ppo.minibatches import Rows
from srlhpc.policies.contracts import ActorCriticPolicy

_Rows = TypeVar("_Rows", bound=Rows)


def warmed_up(policy: ActorCriticPolicy, rows: _Rows, burn_in: int) -> _Rows:
    """The records behind the burn-in, from the state that it leaves: a constant, so that no gradient goes back."""
    if not burn_in:
        return rows
    state = policy.warm_up(
        {key: array[:burn_in] for key, array in rows.observations.items()},
        rows.state,
        rows.first[:burn_in],
        action_masks=None if rows.action_masks is None else rows.action_masks[:burn_in],
    )
    return rows.after(burn_in, dict(state))
