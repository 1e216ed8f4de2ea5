"""Fragments of agents that take turns, as the sequences of their own turns.

Letters: T records of a fragment or window, B columns. Arrays are time-major; `rewards[t]` follows the action at t.

An agent's turns are moved together to the front of its column, and what came while it waited is given to the turn
before. Then all that holds for agents who act at every step holds for them (rl/returns.py, rl/td.py, memory).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class OwnTurns(NamedTuple):
    """Where the records of each column's turns are, and what came of them. Records behind the last are not valid."""

    places: Tensor
    """int64 `[T + 1, B]`: the record that stands here now; T is the observation behind the last record."""
    rewards: Tensor
    """float32 `[T, B]`: what came from a turn to the next."""
    terminated: Tensor
    """bool `[T, B]`: so the episode ended before the next turn."""
    truncated: Tensor
    """bool `[T, B]`: the same, or no later turn is known that could be trained; a value follows."""
    valid: Tensor
    """bool `[T, B]`."""
    cut: Tensor
    """bool `[T, B]`: the last turn; the observation behind the last record follows it."""
    seen: Tensor
    """bool `[T + 1, B]`: a turn stands here, an agent's last observation, or what follows the last of them."""


class _Brought(NamedTuple):
    """What records bring, `[T, B]` each, or `[B]`."""

    rewards: Tensor
    terminated: Tensor
    truncated: Tensor
    cut: Tensor


@torch.no_grad()
def own_turns(
    rewards: Tensor, terminated: Tensor, truncated: Tensor, cut: Tensor, valid: Tensor, asked: Tensor
) -> OwnTurns:
    """The turns of every column.

    A turn has all rewards that come until the agent's next one, and the end of its episode, whoever's action brings
    it. If the agent waits behind the last record, its last turn has no successor yet: it is not valid, and the turn
    before is cut off there, `truncated`, so that sums bootstrap from it.

    Args:
        rewards: float32 `[T, B]`, finite but where a record is neither valid nor of an agent that waits.
        terminated, truncated: bool `[T, B]`, as records have them.
        cut: bool `[T, B]`: nothing later is known.
        valid: bool `[T, B]`: the agent acts, and its record counts.
        asked: bool `[T + 1, B]`: the agent acts, or its last observation is shown; false where it waits or is not in
            the game.
    """
    records, columns = rewards.shape
    is_own = asked[:-1]
    brought = _until_next_turn(_Brought(rewards, terminated, truncated, cut), valid, is_own)
    counts = is_own.sum(0)
    positions = torch.arange(records + 1, device=rewards.device).unsqueeze(1)
    order = torch.argsort((~is_own).byte(), dim=0, stable=True)
    order = torch.cat([order, order.new_full((1, columns), records)])
    places = torch.where(positions < counts, order, records)

    exists = positions[:-1] < counts
    rows = places[:-1].clamp(max=records - 1)
    is_valid = exists & valid.gather(0, rows)
    moved = _Brought(*(array.gather(0, rows).masked_fill(~is_valid, 0) for array in brought))
    is_last = positions[:-1] == counts - 1
    goes_on = is_valid & ~(moved.terminated | moved.truncated)
    pending = is_last & goes_on & ~asked[-1]
    followed_by_pending = torch.zeros_like(pending)
    followed_by_pending[:-1] = goes_on[:-1] & pending[1:]
    is_cut = is_last & asked[-1]
    return OwnTurns(
        places=places,
        rewards=moved.rewards,
        terminated=moved.terminated,
        truncated=(moved.truncated | moved.cut | followed_by_pending | (is_cut & is_valid)) & ~moved.terminated,
        valid=is_valid & ~pending,
        cut=is_cut,
        seen=positions <= counts,
    )


def _until_next_turn(brought: _Brought, valid: Tensor, is_own: Tensor) -> _Brought:
    """What each turn brings, with what comes while the agent waits behind it, up to an end."""
    found = _Brought(*(array.clone() for array in brought))
    later = _Brought(*(torch.zeros_like(array[0]) for array in brought))
    for t in reversed(range(len(is_own))):
        now = _Brought(*(array[t] for array in brought))
        goes_on = ~(now.terminated | now.truncated)
        # Records that count in nothing may hold any number.
        rewards = torch.where(goes_on, now.rewards + later.rewards, now.rewards)
        flags = (here | (goes_on & there) for here, there in zip(now[1:], later[1:], strict=True))
        whole = _Brought(rewards, *flags)
        gets = is_own[t] & valid[t]
        for array, value in zip(found, whole, strict=True):
            array[t] = torch.where(gets, value, array[t])
        later = _Brought(*(torch.where(is_own[t], torch.zeros_like(value), value) for value in whole))
    return found
