"""The values that a batch of windows is learnt from: those of what was done, and those of what followed.

Letters: R records of a window, T trained ones, B columns, K actions, P numbers of a distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.policies.contracts import ActionValuePolicy, ActionValues
from srlhpc.rl.action_choice import greatest
from srlhpc.rl.td import NStep, n_step


class Pair(NamedTuple):
    """Values of trained records and of what follows their sums, `[T, B]` or `[T, B, P]`."""

    taken: Tensor
    """Online values of the actions that were taken, with gradient."""
    later: Tensor
    """Target values of the best actions where the sums end, without gradient."""


def trained(batch: Batch) -> slice:
    """The records that are trained."""
    return slice(batch.burn_in_steps, len(batch.rewards) - batch.after)


def sums(batch: Batch, *, gamma: float, n: int) -> NStep[Tensor]:
    """The sums of n rewards of the trained records, `[T, B]`, in float64."""
    known = slice(batch.burn_in_steps, None)
    rewards, terminated = batch.rewards[known].double(), batch.terminated[known]
    stops = (batch.truncated | batch.cut)[known]
    records = trained(batch).stop - batch.burn_in_steps
    if rewards.device.type == "cpu":
        # Of such small arrays calls cost the most, and numpy's cost a third of torch's.
        found = n_step(rewards.numpy(), terminated.numpy(), stops.numpy(), gamma=gamma, n=n)
        return NStep(*(torch.from_numpy(part[:records]) for part in found))
    return NStep(*(part[:records] for part in n_step(rewards, terminated, stops, gamma=gamma, n=n)))


def values(
    online: ActionValuePolicy, target: ActionValuePolicy, batch: Batch, lengths: Tensor, *, double: bool
) -> Pair:
    """Evaluates both networks where a batch needs it.

    Args:
        online: the network that is trained; with `double`, it chooses the best actions.
        target: the network that tells their values.
        batch: windows.
        lengths: int64 `[T, B]`: records from a trained one to the observation where its sum ends.
        double: whether the online network chooses.
    """
    evaluate = _of_sequences if batch.state else _of_records
    return evaluate(online, target, batch, places_of(lengths), double)


def places_of(lengths: Tensor) -> Tensor:
    """Where sums of so many records end, int64 `[T, B]`: observations, counted from the first trained record's."""
    return lengths + torch.arange(len(lengths), device=lengths.device).unsqueeze(1)


def _of_records(
    online: ActionValuePolicy, target: ActionValuePolicy, batch: Batch, places: Tensor, double: bool
) -> Pair:
    """Only the observations before the first and behind the last reward of each sum are looked at: no memory."""
    now = trained(batch)
    masks = batch.action_masks
    taken = online.action_values(
        {key: array[now] for key, array in batch.observations.items()},
        {},
        batch.first[now],
        action_masks=None if masks is None else masks[now],
    )
    with torch.no_grad():
        places = places + batch.burn_in_steps
        columns = torch.arange(places.shape[1], device=places.device)
        later_masks = None if masks is None else masks[places, columns]
        seen = {key: array[places, columns] for key, array in batch.observations.items()}
        first = batch.first[places, columns]
        later = target.action_values(seen, {}, first, action_masks=later_masks)
        choosing = online.action_values(seen, {}, first, action_masks=later_masks) if double else later
        best = greatest(choosing.means, later_masks)
    return Pair(_of_actions(_told(taken), batch.actions[now]), _of_actions(_told(later), best))


def _of_sequences(
    online: ActionValuePolicy, target: ActionValuePolicy, batch: Batch, places: Tensor, double: bool
) -> Pair:
    """With memory both networks go through the window, each from the state that its own burn-in leaves."""
    burn_in, masks = batch.burn_in_steps, batch.action_masks
    early = {key: array[:burn_in] for key, array in batch.observations.items()}
    late = {key: array[burn_in:] for key, array in batch.observations.items()}
    late_masks = None if masks is None else masks[burn_in:]
    first = batch.first[burn_in:]

    state = online.warm_up(early, batch.state, batch.first[:burn_in])
    seen = online.action_values(late, state, first, action_masks=late_masks)
    with torch.no_grad():
        state = target.warm_up(early, batch.state, batch.first[:burn_in])
        followed = target.action_values(late, state, first, action_masks=late_masks)
        best = greatest((seen if double else followed).means.detach(), late_masks)
        later = _of_actions(_told(followed), best)
        columns = torch.arange(places.shape[1], device=places.device)
        later = later[places, columns]
    records = len(places)
    return Pair(_of_actions(_told(seen)[:records], batch.actions[trained(batch)]), later)


def _told(values: ActionValues) -> Tensor:
    return values.means if values.parts is None else values.parts


def _of_actions(values: Tensor, actions: Tensor) -> Tensor:
    """The entry of one action each: of `[..., K]` or `[..., K, P]`."""
    index = actions.unsqueeze(-1)
    if values.ndim == index.ndim:
        return values.gather(-1, index).squeeze(-1)
    index = index.unsqueeze(-1).expand(*index.shape, values.shape[-1])
    return values.gather(-2, index).squeeze(-2)
